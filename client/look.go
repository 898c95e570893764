package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/fencepost/fencepost/api"
)

// Look returns a lock with its holders and waiters. A free lock has none.
func (c *Client) Look(ctx context.Context, name string) (*api.Lock, error) {
	return get[api.Lock](ctx, c, "/locks/"+url.PathEscape(name))
}

// List iterates over the locks whose names begin with prefix and that are in use, in byte order. A
// state of held or contended selects those; "" is both. After an error it ends.
func (c *Client) List(ctx context.Context, prefix, state string) iter.Seq2[api.LockSummary, error] {
	return func(yield func(api.LockSummary, error) bool) {
		query := url.Values{}
		for name, value := range map[string]string{"prefix": prefix, "state": state} {
			if value != "" {
				query.Set(name, value)
			}
		}
		for {
			page, err := get[api.LockPage](ctx, c, withQuery("/locks", query))
			if err != nil {
				yield(api.LockSummary{}, err)
				return
			}
			for _, lock := range page.Locks {
				if !yield(lock, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			query.Set("cursor", page.NextCursor)
		}
	}
}

// StaleWrite is for a resource that rejected a write: it reports the fence that came with the
// write, the greatest that it knows, and itself. Operators see the report.
func (c *Client) StaleWrite(
	ctx context.Context, name string, presented, known uint64, resource string,
) error {
	_, err := c.ask(ctx, &request{
		method: http.MethodPost, path: "/locks/" + url.PathEscape(name) + "/stale-writes",
		body: &api.StaleWrite{
			FencePresented: api.Fence(presented), FenceKnown: api.Fence(known), Resource: resource,
		},
	})
	return err
}

// Call sends a request to an operation that has no method of its own, such as one of operators. It
// sends body as JSON unless that is nil, and reads the answer into answer unless that is nil. It
// repeats a request without an answer, but not a POST, which could take effect twice.
func (c *Client) Call(
	ctx context.Context, method, path string, header http.Header, body, answer any,
) error {
	r := &request{method: method, path: path, header: header, body: body, timeout: requestTimeout}
	ask := c.ask
	if method == http.MethodPost {
		ask = c.askOnce
	}
	a, err := ask(ctx, r)
	if err != nil || answer == nil || len(a.body) == 0 {
		return err
	}
	if err := json.Unmarshal(a.body, answer); err != nil {
		return noAnswer(err)
	}
	return nil
}

// askOnce makes one attempt.
func (c *Client) askOnce(ctx context.Context, r *request) (*answer, error) {
	ctx, stop := until(ctx, c.calls)
	defer stop()
	if ctx.Err() != nil {
		return nil, cancelled(context.Cause(ctx))
	}
	base := c.config.URLs[c.current.Load()]
	a, err := c.try(ctx, base, r)
	var failed *again
	if errors.As(err, &failed) {
		err = failed.error
		named(err, base)
	}
	return a, err
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	a, err := c.ask(ctx, &request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(a.body, value); err != nil {
		return nil, noAnswer(err)
	}
	return value, nil
}
