package row

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pollEvery is how often the dashboard polls.
const pollEvery = time.Second

// polls are browsers that poll one address.
type polls struct {
	stop    context.CancelFunc
	client  http.Client
	running sync.WaitGroup
	failed  atomic.Int64
}

// startPolls polls until close, one browser for each bearer token, spread over a second. shown gets
// each new answer.
func startPolls(
	ctx context.Context, address string, bearers []string, shown func(i int, answer []byte),
) (*polls, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &polls{stop: cancel, client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(bearers)}}}
	start := time.Now()
	for i, bearer := range bearers {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			cancel()
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		first := start.Add(time.Duration(i) * pollEvery / time.Duration(len(bearers)))
		p.running.Go(func() {
			for at := first; pause(ctx, time.Until(at)) == nil; at = at.Add(pollEvery) {
				if err := p.poll(req, func(answer []byte) { shown(i, answer) }); err != nil && ctx.Err() == nil {
					p.failed.Add(1)
				}
			}
		})
	}
	return p, nil
}

// poll asks once, and keeps the ETag in the request.
func (p *polls) poll(req *http.Request, shown func([]byte)) error {
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil || resp.StatusCode == http.StatusNotModified:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("a poll is answered %s", resp.Status)
	}
	req.Header.Set("If-None-Match", resp.Header.Get("ETag"))
	shown(answer)
	return nil
}

// close ends the polls, and fails if one has failed.
func (p *polls) close() error {
	p.stop()
	p.running.Wait()
	p.client.CloseIdleConnections()
	if n := p.failed.Load(); n > 0 {
		return fmt.Errorf("%d polls failed", n)
	}
	return nil
}
