package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	tenant      = "settlement"
	ttlSeconds  = "3"
	workSeconds = "0.06" // a batch of 20 takes longer than a third of the TTL, so leases are renewed
)

// play is one performance: the servers, the workers and what was done to them.
type play struct {
	dir, api, ledger, store string
	fencing                 bool

	stage             *stage
	apiURL, ledgerURL string
	servers, workers  []*process
	kill, pause       question // where the strikes fell
	stoppedAt         time.Time
	stoppedFor        time.Duration
}

// end stops everything that was started, the workers first.
func (p *play) end() {
	if p.stage != nil {
		p.stage.close()
	}
	for _, one := range slices.Concat(p.workers, p.servers) {
		one.stop()
	}
}

// run performs the play and returns what the ledger shows.
func (p *play) run(ctx context.Context) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	if err := p.perform(ctx); err != nil {
		return nil, err
	}
	return p.report(ctx)
}

// invite prints where the dashboard of this run is.
func (p *play) invite(w io.Writer) error {
	link, err := p.dashboard()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe dashboard of this run: %s\n", link)
	fmt.Fprintf(w, "Then the lock whose lease expired: %s/dashboard/#/locks/%s/%s\n",
		p.apiURL, tenant, p.pause.lock)
	fmt.Fprintln(w, "The first link signs in once, within 5 minutes. Ctrl-C stops the server.")
	return nil
}

// dashboard returns the link that the server printed, which signs in once.
func (p *play) dashboard() (string, error) {
	for _, line := range p.servers[0].lines() {
		if _, link, found := strings.Cut(line, "The dashboard: "); found {
			return link, nil
		}
	}
	return "", errors.New("the server printed no link to its dashboard")
}

// open starts the servers and waits until they are ready.
func (p *play) open(ctx context.Context) (err error) {
	if p.stage, err = openStage(); err != nil {
		return err
	}
	p.apiURL, err = p.serve(ctx, "api", p.api, "--dev", "--data-dir", p.path("data"),
		"--listen", "127.0.0.1:0", "--store", p.store)
	if err != nil {
		return err
	}
	err = p.until(ctx, "the server is not ready", func() (bool, error) {
		_, err := get(ctx, p.apiURL+"/readyz")
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if err := p.writeToken(ctx); err != nil {
		return err
	}
	fence := map[bool]string{true: "on", false: "off"}[p.fencing]
	p.ledgerURL, err = p.serve(ctx, "ledger", p.ledger, "--listen", "127.0.0.1:0",
		"--file", p.path("ledger.db"), "--fence", fence)
	return err
}

// writeToken mints a bearer token for the workers, with the secret that --dev made.
func (p *play) writeToken(ctx context.Context) error {
	mint := exec.CommandContext(ctx, p.api, "token", "--dev", "--data-dir", p.path("data"),
		"--tenant", tenant, "--subject", tenant, "--scope", "locks:read locks:write", "--ttl", "1h")
	mint.Stderr = os.Stderr
	token, err := mint.Output()
	if err != nil {
		return fmt.Errorf("mint a bearer token: %w", err)
	}
	return os.WriteFile(p.path("bearer-token"), token, 0o600)
}

func (p *play) serve(ctx context.Context, name string, argv ...string) (url string, err error) {
	server, err := start(p.dir, name, nil, argv)
	if err != nil {
		return "", err
	}
	p.servers = append(p.servers, server)
	address, err := server.address(ctx)
	return "http://" + address, err
}

// perform runs the workers, strikes two of them, and waits until all work is done.
func (p *play) perform(ctx context.Context) error {
	for _, w := range [][]string{
		{killed, "worker.sh"}, {stopped, "worker.py"}, {bystander, "worker.mjs"},
	} {
		if err := p.hire(w[0], w[1]); err != nil {
			return err
		}
	}
	for range 2 {
		if err := p.strike(ctx); err != nil {
			return err
		}
	}
	close(p.stage.struck)
	if err := p.hire("bash-2", "worker.sh"); err != nil {
		return err
	}
	if err := p.takenOver(ctx); err != nil {
		return err
	}
	if err := p.wake(); err != nil {
		return err
	}
	for _, w := range p.workers {
		if w.name == killed {
			continue
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// strike waits for a worker to reach its mark and kills or stops it there. The
// stopped one is left unanswered until it is woken.
func (p *play) strike(ctx context.Context) error {
	var q question
	err := p.until(ctx, "no worker reached its mark", func() (bool, error) {
		select {
		case q = <-p.stage.strikes:
			return true, nil
		default:
			return false, nil
		}
	})
	if err != nil {
		return err
	}
	if q.worker == killed {
		p.kill = q
		return p.worker(killed).kill()
	}
	p.pause, p.stoppedAt = q, time.Now()
	return p.worker(stopped).signal(syscall.SIGSTOP)
}

// takenOver waits until another worker has finished the batch of the stopped worker.
func (p *play) takenOver(ctx context.Context) error {
	return p.until(ctx, "no worker took "+p.pause.lock+" over", func() (bool, error) {
		settled, err := get(ctx, p.ledgerURL+"/batches/"+p.pause.lock)
		return len(strings.Fields(string(settled))) == batchSize, err
	})
}

// until polls happened. It gives up when ctx ends or when something has failed.
func (p *play) until(ctx context.Context, otherwise string, happened func() (bool, error)) error {
	for {
		if ok, err := happened(); ok || err != nil {
			return err
		}
		if err := p.failed(); err != nil {
			return fmt.Errorf("%s: %w", otherwise, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", otherwise, ctx.Err(), p.tails())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// failed says which server has ended, or which worker that we did not kill has failed.
func (p *play) failed() error {
	for _, one := range p.servers {
		if one.ended() {
			return fmt.Errorf("%s ended: %s\n%s", one.name, one.cmd.ProcessState, one.tail(4))
		}
	}
	for _, one := range p.workers {
		weDid := one.name == killed && p.kill.worker != ""
		if one.ended() && one.err != nil && !weDid {
			return fmt.Errorf("%s: %w\n%s", one.name, one.err, one.tail(4))
		}
	}
	return nil
}

func (p *play) wake() error {
	close(p.stage.wake)
	p.stoppedFor = time.Since(p.stoppedAt)
	return p.worker(stopped).signal(syscall.SIGCONT)
}

// hire starts a worker. The bearer token reaches it by a file.
func (p *play) hire(name, program string) error {
	env := []string{
		"WORKER=" + name, "FENCEPOST_URL=" + p.apiURL, "FENCEPOST_TOKEN_FILE=" + p.path("bearer-token"),
		"LEDGER_URL=" + p.ledgerURL, "INVOICES=" + invoiceFile, "BEFORE_WRITE_URL=" + p.stage.url,
		"TTL_SECONDS=" + ttlSeconds, "WORK_SECONDS=" + workSeconds,
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "TMPDIR=" + p.dir,
	}
	w, err := start(p.dir, name, env, []string{filepath.Join("workers", program)})
	if err == nil {
		p.workers = append(p.workers, w)
	}
	return err
}

func (p *play) worker(name string) *process {
	return p.workers[slices.IndexFunc(p.workers, func(w *process) bool { return w.name == name })]
}

func (p *play) path(name string) string { return filepath.Join(p.dir, name) }

// tails shows the last words of every worker, for a story that got stuck.
func (p *play) tails() string {
	var all strings.Builder
	for _, w := range p.workers {
		fmt.Fprintf(&all, "-- %s\n%s\n", w.name, w.tail(4))
	}
	return all.String()
}

func getJSON(ctx context.Context, url string, into any) error {
	body, err := get(ctx, url)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, err
}
