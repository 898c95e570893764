package faults_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/faults/history"
)

// gap is what is missed: what comes after the one id, up to the other and with it.
type gap struct {
	after, before lock.EventID
	because       string
}

func gapOf(after, before string) (g gap, err error) {
	if g.after, err = lock.ParseEventID(after); err != nil {
		return g, err
	}
	if g.before, err = lock.ParseEventID(before); err == nil && g.after.Compare(g.before) >= 0 {
		err = fmt.Errorf("nothing is missed between %s and %s", after, before)
	}
	return g, err
}

// where is the range of ids in which an event is.
type where struct{ from, to lock.EventID }

// during is the range of an event of one of some writes.
func during(from, to uint64) where {
	return where{lock.EventID{Number: from, Index: 1}, lock.EventID{Number: to, Index: math.MaxUint32}}
}

// has reports whether an event is missed that is somewhere in a range.
func (g gap) has(w where) bool { return w.from.Compare(g.before) <= 0 && w.to.Compare(g.after) > 0 }

// due is what receivers must learn of an entry that held.
type due struct {
	fence          uint64
	granted, ended where
	ends           bool // the end must be delivered
}

// duesOf returns what must be delivered about all holders of some locks, by the store's own
// history.
func duesOf(truth *history.Truth, locks []string) (all []due) {
	for _, name := range locks {
		for _, l := range truth.Entries(name) {
			if truth.Held(name, l.Entry, l.Joined) {
				joined, left := uint64(l.Joined), uint64(l.Left)
				all = append(
					all, due{fence: joined, granted: during(joined, left), ended: during(left, left), ends: true},
				)
			}
		}
	}
	return all
}

// duesOfClients returns what must be delivered as far as clients know. They do not know when a
// release was written.
func duesOfClients(granted, released []int64) (all []due) {
	for _, fence := range granted {
		n := uint64(fence)
		all = append(all, due{
			fence: n, granted: during(n, n), ended: during(n+1, lock.MaxNumber),
			ends: slices.Contains(released, fence),
		})
	}
	return all
}

// outcomes counts the results of one receiver's dues.
type outcomes struct{ told, missed, lacking int }

// count sorts a receiver's dues: delivered, reported as missed, or neither.
func (r *receivers) count(name string, dues []due) (n outcomes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.told[name]
	for _, d := range dues {
		one.add(
			&n, one.acquired, d.fence,
			r.narrow(d.granted, d.fence, func(t *told) map[uint64]lock.EventID { return t.acquired }),
		)
		if d.ends {
			one.add(
				&n, one.ended, d.fence,
				r.narrow(d.ended, d.fence, func(t *told) map[uint64]lock.EventID { return t.ended }),
			)
		}
	}
	return n
}

func (one *told) add(n *outcomes, known map[uint64]lock.EventID, fence uint64, w where) {
	if _, ok := known[fence]; ok {
		n.told++
	} else if slices.ContainsFunc(one.missed, func(g gap) bool { return g.has(w) }) {
		n.missed++
	} else {
		n.lacking++
	}
}

// narrow returns the exact position of an event, if a receiver has it.
func (r *receivers) narrow(w where, fence uint64, of func(*told) map[uint64]lock.EventID) where {
	for _, one := range r.told {
		if id, ok := of(one)[fence]; ok {
			return where{id, id}
		}
	}
	return w
}

// untrue returns deliveries of events that did not happen, or that differ between receivers.
func (r *receivers) untrue(truth *history.Truth, locks []string) (wrong []error) {
	lives := map[string][]life{}
	for _, name := range locks {
		for _, l := range truth.Entries(name) {
			lives[l.Entry] = append(lives[l.Entry], life{l, truth.Held(name, l.Entry, l.Joined)})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := map[lock.EventID]event{}
	for name, one := range r.told {
		for id, e := range one.happened {
			if !slices.ContainsFunc(lives[e.Data.Entry.ID], func(l life) bool { return l.had(e) }) {
				wrong = append(wrong, fmt.Errorf(
					"%s was told %s %+v, which did not happen: %v", name, id, e, lives[e.Data.Entry.ID],
				))
			}
			if before, ok := same[id]; ok && before != e {
				wrong = append(
					wrong, fmt.Errorf("%s was told %s %+v, and another one %+v", name, id, e, before),
				)
			}
			same[id] = e
		}
	}
	return wrong
}

// life is that of an entry, with whether it held: one that never did has no fence.
type life struct {
	history.Life
	held bool
}

// had reports whether an event is one of the life.
func (l life) had(e event) bool {
	if l.Lock != e.Data.Lock || l.held && e.Data.Entry.Fence != uint64(l.Joined) ||
		!l.held && e.Data.Entry.Fence != 0 {
		return false
	}
	number, expired := int64(e.Data.Number), l.Reason == "" || l.Reason == string(lock.Expired)
	switch e.Type {
	case string(lock.EventAcquired):
		return number >= l.Joined && number < l.Left && l.held
	case string(lock.EventReleased):
		return number == l.Left && !expired
	case string(lock.EventExpired):
		return number == l.Left && expired
	}
	return false
}

// disorder returns first attempts about one lock that were out of the order of its events. It
// also returns how many it could check, while no replica was killed. A late message that was sent
// first is in order.
func (r *receivers) disorder() (wrong []error, judged int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, one := range r.told {
		type line struct {
			lock string
			calm int
		}
		newest := map[line]arrival{}
		for _, a := range one.first {
			at := line{a.lock, a.calm}
			last, known := newest[at]
			switch {
			case a.calm == 0:
				continue
			case known && a.id.Compare(last.id) < 0:
				if last.made <= a.made {
					wrong = append(
						wrong,
						fmt.Errorf("%s was told of %s at %s first, and then at %s", name, a.lock, last.id, a.id),
					)
				}
				continue
			case known:
				judged++
			}
			newest[at] = a
		}
	}
	return wrong, judged
}

// TestWhatReceiversLack: an event is missed only if what is said to be missed has it.
func TestWhatReceiversLack(t *testing.T) {
	id := func(number uint64) lock.EventID { return lock.EventID{Number: number, Index: 1} }
	dues := []due{{fence: 10, granted: during(10, 20), ended: during(20, 20), ends: true}}
	for name, c := range map[string]struct {
		missed []gap
		others bool // another receiver has it
		want   int
	}{
		"nothing said":     {nil, false, 2},
		"both":             {[]gap{{after: id(9), before: id(20)}}, false, 0},
		"what comes later": {[]gap{{after: id(20), before: id(30)}}, true, 2},
		"what came before": {[]gap{{after: id(1), before: id(9)}}, true, 2},
		"the grant":        {[]gap{{after: id(9), before: id(10)}}, true, 1},
		"the end":          {[]gap{{after: id(19), before: id(20)}}, true, 1},
		"between them":     {[]gap{{after: id(11), before: id(19)}}, true, 2},
		// the grant may be there
		"between them, none knows": {[]gap{{after: id(11), before: id(19)}}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceivers("it", "other")
			r.told["it"].missed = c.missed
			if c.others {
				r.told["other"].acquired[10], r.told["other"].ended[10] = id(10), id(20)
			}
			if got := r.count("it", dues).lacking; got != c.want {
				t.Errorf("%d lacking, want %d", got, c.want)
			}
		})
	}
}

// TestWhatReceiversMayBeTold: of each event there is an entry to which that happened, and all are
// told the same.
func TestWhatReceiversMayBeTold(t *testing.T) {
	truth, err := history.NewTruth([]history.Change{
		{Lock: "l", Entry: "a", Revision: 10, Joined: true, Claim: history.Claim{Mode: "exclusive"}},
		{Lock: "l", Entry: "b", Revision: 11, Joined: true, Claim: history.Claim{Mode: "exclusive"}},
		{Lock: "l", Entry: "b", Revision: 12, Reason: "withdrawn"},
		{Lock: "l", Entry: "w", Revision: 13, Joined: true, Claim: history.Claim{Mode: "exclusive"}},
		{Lock: "l", Entry: "w", Revision: 14},
		{Lock: "l", Entry: "a", Revision: 20, Reason: "released"},
	})
	if err != nil {
		t.Fatal(err)
	}
	message := func(kind string, number int, entry string, fence int) string {
		return fmt.Sprintf(
			`{"type":"lock.%s","data":{"number":%d,"lock":"l","entry":{"id":%q,"fence":%d}}}`, kind, number,
			entry, fence,
		)
	}
	for name, c := range map[string]struct {
		id, body string
		want     int
	}{
		"the grant":                         {"10-1", message("acquired", 10, "a", 10), 0},
		"the end":                           {"20-1", message("released", 20, "a", 10), 0},
		"the end of who waited":             {"14-1", message("expired", 14, "w", 0), 0},
		"an end of who waited with a fence": {"14-1", message("expired", 14, "w", 13), 1},
		"a grant of who waited":             {"11-1", message("acquired", 11, "b", 11), 1},
		"an end at another place":           {"19-1", message("released", 19, "a", 10), 1},
		"an end of another kind":            {"20-1", message("expired", 20, "a", 10), 1},
		"an entry that never was":           {"10-1", message("acquired", 10, "c", 10), 1},
		"an entry with another fence":       {"10-1", message("acquired", 10, "a", 11), 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceivers("it")
			if err := r.told["it"].take(c.id, []byte(c.body)); err != nil {
				t.Fatal(err)
			}
			if wrong := r.untrue(truth, []string{"l"}); len(wrong) != c.want {
				t.Errorf("%v, want %d", wrong, c.want)
			}
		})
	}
}

// TestOrderOfFirstAttempts: what was sent earlier and comes later is in order, what was sent later
// is not.
func TestOrderOfFirstAttempts(t *testing.T) {
	one, two := lock.EventID{Number: 1, Index: 1}, lock.EventID{Number: 2, Index: 1}
	for name, c := range map[string]struct {
		first         []arrival
		wrong, judged int
	}{
		"in order":           {[]arrival{{"l", one, 1, 5}, {"l", two, 1, 5}}, 0, 1},
		"not in order":       {[]arrival{{"l", two, 1, 5}, {"l", one, 1, 6}}, 1, 0},
		"one came late":      {[]arrival{{"l", two, 1, 6}, {"l", one, 1, 5}}, 0, 0},
		"of two locks":       {[]arrival{{"l", two, 1, 5}, {"k", one, 1, 6}}, 0, 0},
		"with a kill at one": {[]arrival{{"l", two, 1, 5}, {"l", one, 0, 6}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceivers("it")
			r.told["it"].first = c.first
			if wrong, judged := r.disorder(); len(wrong) != c.wrong || judged != c.judged {
				t.Errorf("%v and %d judged, want %d and %d", wrong, judged, c.wrong, c.judged)
			}
		})
	}
}
