package faults_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/fencepost/fencepost/test/faults/drive"
)

// anyOf takes any of the fenced locks, for a request that names one of them, and returns which.
func (s *fencing) anyOf(c *drive.Client, r drive.Request) (h *drive.Hold, i int) {
	type named struct {
		Name string `json:"name"`
	}
	var names []named
	for _, i := range rand.Perm(fencedLocks) {
		names = append(names, named{fmt.Sprint("fenced:", i)})
	}
	body := map[string]any{
		"locks": names, "any": 1, "ttl_seconds": r.TTL.Seconds(), "wait_seconds": r.Wait.Seconds(),
	}
	for attempt := range r.Attempts {
		a := c.Ask(s.ctx, r.Replica+attempt, http.MethodPost, "/locksets",
			map[string]string{"Idempotency-Key": r.Key}, body, r.Wait)
		switch a.Status {
		case http.StatusCreated:
			var got struct {
				Locks []struct {
					Name  string
					Fence int64
				}
			}
			s.must(json.Unmarshal(a.Body, &got))
			if len(got.Locks) != 1 {
				s.t.Errorf("any of the pool is granted as %s", a.Body)
				return nil, 0
			}
			r.Lock, a.Entry.Fence = got.Locks[0].Name, got.Locks[0].Fence
			_, err := fmt.Sscanf(r.Lock, "fenced:%d", &i)
			s.must(err)
			h = drive.HoldOf(r, a)
			h.Set = true
			return h, i
		case http.StatusLocked, http.StatusGone:
			return nil, 0
		}
	}
	return nil, 0
}
