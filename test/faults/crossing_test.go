package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/waits"
	"github.com/fencepost/fencepost/test/rig"
)

// TestDeadlockCrossing has a ring of workers, each with a lock, ask for the next
// one's at the same moment, through two replicas in turn. Exactly one is refused,
// whoever comes last; the others are granted one after the other as the ring
// unwinds.
func TestDeadlockCrossing(t *testing.T) {
	s := newStand(t, 10*time.Minute)
	const batch = 40 // replicas remember the last hundred
	batches, crossed, rings := count(1, 25), 0, 0
	ctx, cancel := context.WithTimeout(s.ctx, seenWithin)
	defer cancel()
	for i := 0; i < batches || crossed < batches && ctx.Err() == nil; i++ {
		rings += batch
		p := s.play(fmt.Sprint("crossing-", i), 0)
		for ring := range batch {
			p.prefix = fmt.Sprintf("%d:", ring)
			if p.cross(2 + ring%3); t.Failed() {
				return
			}
		}
		// What is refused before it is written is known at its own replica only.
		crossed += s.deadlocksAt(0, p.tenant) + s.deadlocksAt(1, p.tenant) - batch
	}
	t.Logf("%d rings, of which %d were closed by requests that crossed", rings, crossed)
	if crossed < batches {
		t.Error("too few crossed for the run to count")
	}
	s.readLogs()
}

// cross makes a ring of n workers.
func (p *play) cross(n int) {
	held, ring := make([]*asked, n), make([]*asked, n)
	for i := range n {
		held[i] = p.worker(i, i)
		held[i].status, held[i].err = p.send(p.ctx, held[i])
		if held[i].status != http.StatusCreated {
			p.t.Fatalf("worker %d: %d, %v", i, held[i].status, held[i].err)
		}
	}
	refused := make(chan int, n)
	var all sync.WaitGroup
	for i := range n {
		ring[i] = p.worker(i, (i+1)%n)
	}
	for i := range n {
		all.Go(func() {
			ring[i].status, ring[i].err = p.send(p.ctx, ring[i])
			if ring[i].status == http.StatusCreated {
				p.release(ring[i]).do()
			} else if err := ring[i].checkCycle(p.prefix); err != nil {
				p.t.Errorf("worker %d of %d: %d, %v, %v", i, n, ring[i].status, ring[i].err, err)
			}
			refused <- ring[i].status
			p.release(held[i]).do() // which lets the one before it go on
		})
	}
	all.Wait()
	conflicts := 0
	for range n {
		if <-refused == http.StatusConflict {
			conflicts++
		}
	}
	if conflicts != 1 {
		p.t.Errorf("%d of a ring of %d are refused, want 1", conflicts, n)
	}
}

// worker is a request of worker i for lock number of.
func (p *play) worker(i, of int) *asked {
	p.serial++
	return &asked{replica: (i + p.serial) % 2, Request: &waits.Request{
		ID: p.serial, Holder: fmt.Sprint("worker-", i),
		Claims: []waits.Claim{{Name: fmt.Sprint(p.prefix, of), Mode: "exclusive"}},
	}}
}

// deadlocksAt returns how many refused deadlocks of the tenant a replica knows of.
func (s *stand) deadlocksAt(replica int, tenant string) int {
	s.t.Helper()
	bearer, err := rig.SignToken(secret, "operator", "admin", "operator")
	s.must(err)
	var page struct{ Deadlocks []struct{ Refused string } }
	p := play{stand: s, bearer: bearer, http: http.DefaultClient}
	if status, err := p.exchange(s.ctx, replica, http.MethodGet, "/admin/deadlocks?tenant="+tenant, "", struct{}{}, &page); status != http.StatusOK {
		s.t.Fatalf("deadlocks of replica %d: %d, %v", replica, status, err)
	}
	return len(page.Deadlocks)
}

// TestDeadlockOfTheDead: a lock whose lease has ended is held by nobody, so its
// former holder closes no cycle by it.
func TestDeadlockOfTheDead(t *testing.T) {
	s := newStand(t, 5*time.Minute)
	p := s.play("dead", 0)
	first, second := p.worker(0, 0), p.worker(1, 1)
	first.ttl = 2
	for _, a := range []*asked{first, second} {
		if a.status, a.err = p.send(p.ctx, a); a.status != http.StatusCreated {
			t.Fatalf("%d, %v", a.status, a.err)
		}
	}
	heir := p.worker(1, 0) // waits until the first one's lease has ended
	if heir.status, heir.err = p.send(p.ctx, heir); heir.status != http.StatusCreated {
		t.Fatalf("the heir: %d, %v", heir.status, heir.err)
	}
	again, told := p.worker(0, 1), make(chan struct{})
	go func() {
		defer close(told)
		again.status, again.err = p.send(p.ctx, again)
	}()
	for _, waiters := p.look(0, second.Claims[0].Name); len(waiters) == 0; _, waiters = p.look(0, second.Claims[0].Name) {
		select {
		case <-told:
			t.Fatalf("who lost its lock is told %d, %+v", again.status, again.answer)
		default:
			pause(p.ctx, 10*time.Millisecond)
		}
	}
	p.release(second).do()
	<-told
	if again.status != http.StatusCreated {
		t.Errorf("who lost its lock is told %d, %v", again.status, again.err)
	}
	back := p.worker(0, 0) // now the heir holds it and waits for nothing
	back.wait = 1
	if back.status, back.err = p.send(p.ctx, back); back.status != http.StatusLocked {
		t.Errorf("waiting for the heir: %d, %v, want 423 after a second", back.status, back.err)
	}
}
