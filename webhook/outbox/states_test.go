package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// countsStates counts the states that are written, and their bytes.
type countsStates struct {
	Records
	mu    sync.Mutex
	times map[string]int // by tenant and id
	count map[string]int // by tenant; "" is all
	bytes map[string]int
}

func (r *countsStates) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	if strings.HasPrefix(p.Kind, "webhook-state-") {
		r.mu.Lock()
		r.times[targetName(p.Tenant, p.ID)]++
		for _, of := range []string{p.Tenant, ""} {
			r.count[of]++
			r.bytes[of] += len(p.Value)
		}
		r.mu.Unlock()
	}
	return r.Records.Put(ctx, p)
}

// TestManyStates: how webhooks do is written no more often than is said, by number and in bytes, however many change all
// the time, of one tenant and of all; and each in its turn.
func TestManyStates(t *testing.T) {
	for name, c := range map[string]struct{ tenants, webhooks, bytes, minutes int }{
		"one tenant":         {1, 125, 100, 1}, // an eighth of what it may have
		"large ones":         {1, 12, 50_000, 1},
		"many tenants":       {100, 1, 100, 1},
		"many of many":       {10, 125, 100, 3},
		"many large of many": {10, 12, 50_000, 3},
		"a few":              {1, 12, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { manyStates(t, c.tenants, c.webhooks, c.bytes, c.minutes) })
		})
	}
}

func manyStates(t *testing.T, tenants, webhooks, bytes, minutes int) {
	t.Helper()
	m := newMissing(t)
	counts := &countsStates{Records: m.Records, times: map[string]int{}, count: map[string]int{}, bytes: map[string]int{}}
	m.Records = counts
	var all []*target
	for tenant := range tenants {
		for webhook := range webhooks {
			one := m.owner.target(fmt.Sprint("tenant-", tenant), fmt.Sprint(webhook))
			one.Recent = []*recent{{ID: "1-1", Lock: strings.Repeat("a", bytes)}}
			all = append(all, one)
		}
	}
	seconds := 60 * minutes
	for range seconds * int(time.Second/tick) {
		for _, one := range all {
			one.dirty = true
		}
		m.writeStates(time.Now())
		m.takes()
		<-time.After(tick)
	}
	const burst, largest = 2, store.MaxRecordValue // seconds, and of one that is begun when little is left
	if n := counts.count["tenant-0"]; n > (seconds+burst)*statesOfTenant {
		t.Errorf("of one tenant %d are written in %d s", n, seconds)
	}
	if n := counts.count[""]; n > (seconds+burst)*statesInAll {
		t.Errorf("%d are written in %d s", n, seconds)
	}
	if n := counts.bytes["tenant-0"]; n > (seconds+burst)*stateBytesOfTenant+largest {
		t.Errorf("of one tenant %d bytes are written in %d s", n, seconds)
	}
	if n := counts.bytes[""]; n > (seconds+burst)*stateBytesInAll+largest {
		t.Errorf("%d bytes are written in %d s", n, seconds)
	}
	least, most := seconds, 0
	for _, one := range all {
		n := counts.times[targetName(one.tenant, one.id)]
		least, most = min(least, n), max(most, n)
	}
	if least == 0 || most > least+2 {
		t.Errorf("some are written %d times, and others %d times", least, most)
	}
	if want := seconds / int(statePause/time.Second); len(all) <= 12 && bytes == 100 && least < want-1 {
		t.Errorf("few are written %d times, want %d", least, want)
	}
}

// TestStatesBesideManyOthers: how a tenant's few webhooks do is written as soon as ever, beside tenants with so many that
// they use up what there is.
func TestStatesBesideManyOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const tenants, webhooks, seconds = 20, 125, 60
		m := newMissing(t)
		counts := &countsStates{Records: m.Records, times: map[string]int{}, count: map[string]int{}, bytes: map[string]int{}}
		m.Records = counts
		all := []*target{m.owner.target("few", "one")}
		for tenant := range tenants {
			for webhook := range webhooks {
				all = append(all, m.owner.target(fmt.Sprint("tenant-", tenant), fmt.Sprint(webhook)))
			}
		}
		for range seconds * int(time.Second/tick) {
			for _, one := range all {
				one.dirty = true
			}
			m.writeStates(time.Now())
			m.takes()
			<-time.After(tick)
		}
		if n, want := counts.count["few"], seconds/int(statePause/time.Second); n < want-1 {
			t.Errorf("it is written %d times in %d s, want %d", n, seconds, want)
		}
		if n := counts.count[""]; n < seconds*statesInAll {
			t.Errorf("%d are written in %d s, of which there is room for %d", n, seconds, seconds*statesInAll)
		}
		least, most := seconds*statesInAll, 0
		for tenant := range tenants {
			n := counts.count[fmt.Sprint("tenant-", tenant)]
			least, most = min(least, n), max(most, n)
		}
		if most > least+2*statesOfTenant { // which one may have at once
			t.Errorf("of some tenants %d are written, and of others %d", least, most)
		}
	})
}

// TestLastStates: who gives a shard up writes no more of how webhooks do than it could in the time that it has for that, in
// turns of the tenants, and nothing when the shard may be another one's.
func TestLastStates(t *testing.T) {
	const tenants, webhooks = 20, 125
	const seconds = int(callTimeout/time.Second) + 1 // of which one may be paid for later
	for name, c := range map[string]struct {
		bytes int
		over  bool // its lease is
	}{"small ones": {bytes: 100}, "large ones": {bytes: 50_000}, "it may be another one's": {bytes: 100, over: true}} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			counts := &countsStates{Records: m.Records, times: map[string]int{}, count: map[string]int{}, bytes: map[string]int{}}
			m.Records = counts
			dirty := func(tenant, id string) {
				one := m.owner.target(tenant, id)
				one.Recent, one.dirty = []*recent{{ID: "1-1", Lock: strings.Repeat("a", c.bytes)}}, true
			}
			dirty("few", "one")
			for tenant := range tenants {
				for webhook := range webhooks {
					dirty(fmt.Sprint("tenant-", tenant), fmt.Sprint(webhook))
				}
			}
			if c.over {
				m.lease.until.Store(new(time.Time))
			}
			m.writeLast()
			if n := counts.count[""]; n > seconds*statesInAll || c.over != (n == 0) {
				t.Errorf("%d are written", n)
			}
			if n := counts.bytes[""]; n > seconds*stateBytesInAll+store.MaxRecordValue {
				t.Errorf("%d bytes are written", n)
			}
			least, most := tenants*webhooks, 0
			for tenant := range tenants {
				n := counts.count[fmt.Sprint("tenant-", tenant)]
				least, most = min(least, n), max(most, n)
			}
			if !c.over && counts.count["few"] != 1 || most > least+statesOfTenant {
				t.Errorf("%d are written of who has one, of some %d and of others %d", counts.count["few"], least, most)
			}
		})
	}
}

// slowStates are records of which writes of states wait.
type slowStates struct {
	Records
	goOn  chan struct{}
	wrote atomic.Int64
}

func (s *slowStates) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	<-s.goOn
	s.wrote.Add(1)
	return s.Records.Put(ctx, p)
}

// TestOneWriteOfAStateAtATime: what has changed again while a state is being written, however long that takes, is written
// after that: a second write would find another version than it knows.
func TestOneWriteOfAStateAtATime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		slow := &slowStates{Records: m.Records, goOn: make(chan struct{})}
		m.Records = slow
		for i := range 3 {
			m.target.dirty = true
			m.writeStates(time.Now().Add(time.Duration(1+i) * statePause))
		}
		close(slow.goOn)
		m.takes()
		if n := slow.wrote.Load(); n != 1 || !m.target.dirty {
			t.Errorf("it is written %d times, and to be written again: %t", n, m.target.dirty)
		}
	})
}
