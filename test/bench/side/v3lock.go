package side

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/fencepost/fencepost/test/bench/load"
)

// v3lockWorker locks through etcd's HTTP gateway as a client must that wants
// what one of ours gets, a lease of its own for each lock: grant a lease, lock;
// then unlock, revoke the lease.
type v3lockWorker struct {
	http  *caller
	lease string
	key   string
}

// NewV3LockWorkers returns n clients, spread evenly over the members.
func NewV3LockWorkers(c *Connections, members []*url.URL, n int) []load.Worker {
	workers := make([]load.Worker, n)
	for i := range workers {
		header := http.Header{"Content-Type": {"application/json"}}
		workers[i] = &v3lockWorker{http: newCaller(c, members[i%len(members)], header)}
	}
	return workers
}

func (w *v3lockWorker) Acquire(ctx context.Context, name string) (int64, error) {
	var granted struct{ ID string }
	if err := w.call(
		ctx, "/v3/lease/grant", fmt.Sprintf(`{"TTL":%d}`, ttlSeconds), &granted,
	); err != nil {
		return 0, err
	}
	w.lease = granted.ID
	var locked struct {
		Key    string
		Header struct {
			Revision int64 `json:",string"`
		}
	}
	body := fmt.Sprintf(
		`{"name":%q,"lease":%q}`, base64.StdEncoding.EncodeToString([]byte(name)), w.lease,
	)
	if err := w.call(ctx, "/v3/lock/lock", body, &locked); err != nil {
		return 0, err
	}
	w.key = locked.Key
	return locked.Header.Revision, nil
}

func (w *v3lockWorker) Release(ctx context.Context) error {
	if err := w.call(ctx, "/v3/lock/unlock", fmt.Sprintf(`{"key":%q}`, w.key), nil); err != nil {
		return err
	}
	return w.call(ctx, "/v3/lease/revoke", fmt.Sprintf(`{"ID":%q}`, w.lease), nil)
}

func (w *v3lockWorker) call(ctx context.Context, path, body string, into any) error {
	answer, err := w.http.expect(ctx, http.StatusOK, http.MethodPost, path, nil, []byte(body))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
