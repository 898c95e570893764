package handlers_test

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// TestEveryCodeIsProducedByARequest: each code of the table has a request that gets it, with a
// detail that says what to do next and a type that is a page of the server.
func TestEveryCodeIsProducedByARequest(t *testing.T) {
	t.Parallel()
	requests := faultyRequests()
	maps.Copy(requests, untimelyRequests())
	for _, code := range api.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			request := requests[code]
			if request == nil {
				t.Fatal("no request of this test produces the code")
			}
			a := request(t, newTenant(t))
			a.wantStatus(code.Status())
			got := a.fields()
			if got["code"] != string(code) {
				t.Fatalf("%v, want the code %s", a, code)
			}
			kind, _ := got["type"].(string)
			page := newTenant(t).with("").get(kind)
			if page.status != http.StatusOK || !strings.Contains(string(page.body), code.Advice()[:20]) {
				t.Errorf("%v does not say what to do", page)
			}
		})
	}
}

// faultyRequests returns a request for each code that the request itself is at fault for.
func faultyRequests() map[api.Code]func(*testing.T, *client) *answer {
	return map[api.Code]func(*testing.T, *client) *answer{
		api.InvalidRequest: func(_ *testing.T, c *client) *answer {
			return c.post("/locks/a", body(`{"ttl_seconds":-1}`))
		},
		api.InvalidName:     func(_ *testing.T, c *client) *answer { return c.post("/locks/-a") },
		api.Unauthenticated: func(_ *testing.T, c *client) *answer { return c.with("x").get("/locks") },
		api.Forbidden: func(_ *testing.T, c *client) *answer {
			return c.as(func(cl *auth.Claims) { cl.Scopes = nil }).get("/locks")
		},
		api.TokenMismatch: func(_ *testing.T, c *client) *answer {
			return c.put("/locks/a/renew", lockToken(someToken))
		},
		api.NotFound:         func(_ *testing.T, c *client) *answer { return c.get("/nowhere") },
		api.MethodNotAllowed: func(_ *testing.T, c *client) *answer { return c.do("PATCH", "/locks/a") },
		api.IdempotencyMismatch: func(_ *testing.T, c *client) *answer {
			c.acquire("a", key("k"))
			return c.post("/locks/a", key("k"), body(`{"ttl_seconds":7}`))
		},
		api.ModeMismatch: func(_ *testing.T, c *client) *answer {
			c.acquire("a")
			return c.post("/locks/a", body(`{"mode":"semaphore","limit":2}`))
		},
		api.Deadlock: func(_ *testing.T, c *client) *answer {
			c.acquire("a", worker("w"))
			return c.post("/locks/a", waitsAs("w"))
		},
		api.Superseded: func(_ *testing.T, c *client) *answer {
			c.acquire("a")
			older := c.join("a", body(`{"wait_seconds":60,"only_newest":true}`))
			c.start("POST", "/locks/a", body(`{"wait_seconds":60,"only_newest":true}`))
			return older.wait()
		},
		api.Changed: func(_ *testing.T, c *client) *answer {
			e := c.acquire("a")
			return c.admin().post(
				"/admin/locks/"+c.claims.Tenant+"/a/entries/"+e.ID+"/revoke",
				body(`{"fence":`+strconv.FormatUint(*e.Fence+1, 10)+`,"reason":"`+explanation+`"}`),
			)
		},
		api.NoCallbackSecret: func(_ *testing.T, c *client) *answer {
			return c.post("/locks/a", body(
				`{"async":true,"wait_seconds":60,"callback_url":"https://example.org/"}`,
			))
		},
		api.Lost: func(_ *testing.T, c *client) *answer {
			e := c.acquire("a")
			c.release(e)
			return c.put("/locks/a/renew", lockToken(e.Token))
		},
		api.BodyTooLarge: func(_ *testing.T, c *client) *answer {
			return c.post("/locks/a", body(padded(16<<10+1)), loose)
		},
		api.UnsupportedMedia: func(_ *testing.T, c *client) *answer {
			return c.post("/locks/a", body("{}"), header("Content-Type", "text/plain"), loose)
		},
	}
}

// untimelyRequests returns a request for each code that the state of the lock, the tenant or the
// server is at fault for.
func untimelyRequests() map[api.Code]func(*testing.T, *client) *answer {
	return map[api.Code]func(*testing.T, *client) *answer{
		api.Held: func(_ *testing.T, c *client) *answer {
			c.acquire("a")
			return c.post("/locks/a")
		},
		api.TimedOut: func(_ *testing.T, c *client) *answer {
			c.acquire("a")
			return c.post("/locks/a", body(`{"wait_seconds":0.1}`))
		},
		api.Closed: func(t *testing.T, c *client) *answer {
			c.admin().closes("a", time.Hour)
			var a *answer
			poll.Until(t, "the replica knows the closure", func() bool {
				a = c.post("/locks/a")
				return a.fields()["code"] == string(api.Closed)
			})
			return a
		},
		api.RateLimited: func(t *testing.T, c *client) *answer {
			c.limits(`{"requests_per_second":1}`)
			var a *answer
			poll.Until(t, "the rate is used up", func() bool {
				a = c.get("/locks")
				return a.status == http.StatusTooManyRequests
			})
			return a
		},
		api.Overloaded: overload,
		api.QuotaExceeded: func(_ *testing.T, c *client) *answer {
			c.limits(`{"held_locks":1}`)
			c.acquire("a")
			return c.post("/locks/b")
		},
		api.Draining: func(t *testing.T, c *client) *answer {
			r := newReplica(t, func(*service.Config) {})
			r.service.Drain()
			return c.at(r).post("/locks/a")
		},
		// The store's own tests bring it into these states.
		api.StoreUnavailable:   failsWith(&lock.Error{Code: lock.StoreUnavailable}),
		api.FenceFloorRequired: failsWith(&lock.Error{Code: lock.FenceFloorRequired}),
		api.Internal:           failsWith(&lock.Error{Code: lock.Internal}),
	}
}

// failsWith returns a request to a replica whose store fails with err.
func failsWith(err *lock.Error) func(*testing.T, *client) *answer {
	err.Detail, err.RetryAfter = "the detail", time.Second
	return func(t *testing.T, _ *client) *answer {
		return over(t, &stub{err: err}).start("POST", "/locks/a").raw()
	}
}

// overload has a tenant wait with as many requests as the server has connections for it.
func overload(t *testing.T, c *client) *answer {
	r, w := bounded(t, 12)
	for range 9 {
		conn := dial(t, r)
		conn.ask("POST", "/locks/a", c.bearer)
		<-w.came
	}
	return c.at(r).get("/locks")
}
