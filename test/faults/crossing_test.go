package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/rig"
)

// TestDeadlockCrossing has a ring of workers, each with a lock, ask for the next
// one's at the same moment, through two replicas in turn. The server rejects exactly
// one; the others are granted one after the other as the ring unwinds.
func TestDeadlockCrossing(t *testing.T) {
	s := newStand(t, 10*time.Minute)
	const batch = 40 // replicas list the last hundred
	batches, crossed, rings := count(1, 25), 0, 0
	for end := time.Now().Add(
		seenWithin,
	); rings < batches*batch || crossed < batches && time.Now().Before(end); {
		r := s.rings(fmt.Sprint("crossing-", rings))
		for range batch {
			if rings++; !r.cross(rings) {
				return
			}
		}
		// What is rejected before it is written is known at its own replica only.
		crossed += r.deadlocks(0) + r.deadlocks(1) - batch
	}
	t.Logf("%d rings, of which %d were closed by requests that crossed", rings, crossed)
	if crossed < batches {
		t.Error("too few crossed for the run to count")
	}
	s.readLogs()
}

// rings are the workers of one tenant.
type rings struct {
	*stand
	tenant  string
	workers []*drive.Client
}

func (s *stand) rings(tenant string) *rings {
	s.t.Helper()
	r := &rings{stand: s, tenant: tenant}
	bearer, err := rig.SignToken(secret, tenant, "locks:read locks:write", "worker")
	s.must(err)
	for i := range 4 {
		c := drive.NewClient(i, s.urls(), bearer, s.history, s.odd)
		r.workers = append(r.workers, c)
		s.t.Cleanup(c.Close)
	}
	return r
}

// acquire has a worker ask for a lock of a ring.
func (r *rings) acquire(c *drive.Client, ring, lock int) drive.Answer {
	const wait = time.Minute
	body := map[string]any{
		"holder":       fmt.Sprint(ring, ":", c.Number),
		"ttl_seconds":  60,
		"wait_seconds": wait.Seconds(),
	}
	return c.Ask(
		r.ctx, c.Number+ring, http.MethodPost, fmt.Sprintf("/locks/%d:%d", ring, lock), nil, body, wait,
	)
}

func (r *rings) release(c *drive.Client, a drive.Answer) {
	token := map[string]string{"Lock-Token": a.Entry.Token}
	c.Ask(r.ctx, c.Number, http.MethodDelete, "/locks/"+a.Entry.Name, token, nil, 0)
}

// cross makes a ring of two to four workers, and reports whether one was rejected as it should.
func (r *rings) cross(ring int) bool {
	workers := r.workers[:2+ring%3]
	held := make([]drive.Answer, len(workers))
	for i, c := range workers {
		if held[i] = r.acquire(c, ring, i); held[i].Status != http.StatusCreated {
			r.t.Fatalf("worker %d of ring %d: %v", i, ring, held[i])
		}
	}
	asked := make([]drive.Answer, len(workers))
	var all sync.WaitGroup
	for i, c := range workers {
		all.Go(func() {
			if asked[i] = r.acquire(c, ring, (i+1)%len(workers)); asked[i].Status == http.StatusCreated {
				r.release(c, asked[i])
			}
			r.release(c, held[i]) // which lets the one before it go on
		})
	}
	all.Wait()
	rejected := 0
	for i, a := range asked {
		if a.Status == http.StatusConflict {
			rejected++
			r.must(checkCycle(a.Body, fmt.Sprint(ring, ":", i)))
		} else if a.Status != http.StatusCreated {
			r.t.Errorf("worker %d of ring %d: %v", i, ring, a)
		}
	}
	if rejected != 1 {
		r.t.Errorf("%d of a ring of %d are rejected, want 1", rejected, len(workers))
	}
	return !r.t.Failed()
}

// checkCycle checks that a rejection names a cycle with the holder that it rejects.
func checkCycle(body []byte, holder string) error {
	type step struct {
		Holder   string
		WaitsFor string `json:"waits_for"`
		InTheWay string `json:"in_the_way"`
	}
	var problem struct {
		Code  string
		Cycle []step
	}
	if err := json.Unmarshal(body, &problem); err != nil || problem.Code != "deadlock" {
		return fmt.Errorf("rejected with %s: %w", body, err)
	}
	cycle := problem.Cycle
	for i, s := range cycle {
		if next := cycle[(i+1)%len(cycle)]; s.InTheWay != next.Holder || s.WaitsFor == "" {
			return fmt.Errorf("%+v is no cycle", cycle)
		}
	}
	if !slices.ContainsFunc(cycle, func(s step) bool { return s.Holder == holder }) {
		return fmt.Errorf("%+v is a cycle without %s", cycle, holder)
	}
	return nil
}

// deadlocks returns how many rejected deadlocks of the tenant a replica lists.
func (r *rings) deadlocks(replica int) int {
	r.t.Helper()
	bearer, err := rig.SignToken(secret, "operator", "admin", "operator")
	r.must(err)
	header := map[string]string{"Authorization": "Bearer " + bearer}
	a := r.workers[0].Ask(
		r.ctx, replica, http.MethodGet, "/admin/deadlocks?tenant="+r.tenant, header, nil, 0,
	)
	var page struct{ Deadlocks []struct{ Refused string } }
	if err := json.Unmarshal(a.Body, &page); err != nil || a.Status != http.StatusOK {
		r.t.Fatalf("deadlocks of replica %d: %v, %v", replica, a, err)
	}
	return len(page.Deadlocks)
}
