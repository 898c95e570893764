package client

import (
	"context"
	"encoding/json"
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
