package simulation

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// doctored is a history in which something is wrong that the replicas and the store
// did not do.
type doctored struct {
	*world
	t      *testing.T
	number uint64
	store  *memory.Client
}

// TestChecksCanFail: each check fails on a history that was doctored for it, and there
// is no check without one.
func TestChecksCanFail(t *testing.T) {
	failed := map[string]bool{}
	all := doctors()
	maps.Copy(all, postDoctors())
	maps.Copy(all, writeDoctors())
	for name, doctor := range all {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				for _, format := range problemsOf(t, doctor) {
					failed[format] = true
				}
			})
		})
	}
	for _, format := range allChecks(t) {
		if !failed[format] {
			t.Errorf("no doctored history fails the check %q", format)
		}
	}
}

// problemsOf returns the formats of the problems of a doctored history.
func problemsOf(t *testing.T, doctor func(*doctored)) []string {
	broken := brokenBy(t, doctor)
	if len(broken) == 0 {
		t.Error("no check failed")
	}
	return broken
}

// brokenBy is like problemsOf, and there may be none.
func brokenBy(t *testing.T, doctor func(*doctored)) []string {
	w := newWorld(
		options{Replicas: 1, Locks: 1, Latency: time.Millisecond, Operations: 60, Length: time.Minute},
		nil,
	)
	d := &doctored{world: w, t: t, number: 1000, store: w.server.Connect(nil)}
	d.pass(time.Second)
	doctor(d)
	broken := w.broken
	w.healed = true
	w.end()
	d.store.Close()
	return broken
}

// allChecks finds the formats of all problems in the code.
func allChecks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []string
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\.problem\("([^"]+)"`).FindAllSubmatch(code, -1) {
			all = append(all, string(found[1]))
		}
	}
	if len(all) < 30 {
		t.Errorf("%d checks were found", len(all))
	}
	return all
}

func doctors() map[string]func(*doctored) {
	return map[string]func(*doctored){
		"events differ":    func(d *doctored) { d.events(lock.EventAcquired, lock.EventEnqueued) },
		"an event missing": func(d *doctored) { d.events(lock.EventAcquired) },
		"told of nothing":  func(d *doctored) { d.told(d.entry("a"), acquire, true) },
		"told of the dead": func(d *doctored) {
			e := d.joined("a")
			d.left(e, lock.Released)
			d.told(e, renew, true)
		},
		"holds, told to wait":   func(d *doctored) { d.told(d.joined("a"), renew, false) },
		"waits, told to hold":   func(d *doctored) { d.joined("a"); d.told(d.joined("b"), renew, true) },
		"granted and withdrawn": func(d *doctored) { d.left(d.held("a"), lock.Withdrawn) },
		"expired early":         func(d *doctored) { d.left(d.held("a"), lock.Expired) },
		"a key granted twice":   func(d *doctored) { d.left(d.held("a"), lock.Released); d.held("a") },
		"busy, and free":        func(d *doctored) { d.refused("a", acquire, lock.Held) },
		"timed out, and free":   func(d *doctored) { d.refused("a", acquire, lock.TimedOut) },
		"modes clash with none": func(d *doctored) { d.refused("a", acquire, lock.ModeMismatch) },
		"the same parameters":   func(d *doctored) { d.refused("a", acquire, lock.IdempotencyMismatch) },
		"closed by nobody":      func(d *doctored) { d.refused("a", acquire, lock.Closed) },
		"joined, and closed":    func(d *doctored) { d.closedAndJoined() },
		"asked by nobody":       func(d *doctored) { d.askedByNobody() },
		"an odd answer":         func(d *doctored) { d.refused("a", acquire, lock.Forbidden) },
		"deadlock":              func(d *doctored) { d.refused("a", acquire, lock.Deadlock) },
		"superseded by none":    func(d *doctored) { d.refused("a", acquire, lock.NotNewest) },
		"superseded, and held":  func(d *doctored) { d.left(d.held("a"), lock.Superseded) },
		"superseded by nothing": func(d *doctored) {
			d.joined("a")
			d.left(d.joined("b"), lock.Superseded)
		},
		"superseded, and stays": func(d *doctored) { d.newestOf("a", "b", "c"); d.watch() },
		"timed out and stayed": func(d *doctored) {
			d.joined("a")
			d.joined("b")
			d.refused("b", acquire, lock.TimedOut)
		},
		"released by nobody": func(d *doctored) {
			d.left(d.joined("a"), lock.Expired)
			d.truth.check(d.call(release, d.entry("a")))
		},
		"lost nothing":    func(d *doctored) { d.lost("a", renew, lock.Expired) },
		"lost, and there": func(d *doctored) { d.joined("a"); d.lost("a", renew, lock.Expired) },
		"another reason": func(d *doctored) {
			d.left(d.joined("a"), lock.Released)
			d.lost("a", renew, lock.Revoked)
		},
		"used up, and there": func(d *doctored) { d.joined("a"); d.lost("a", acquire, lock.Released) },
		"used up by nobody":  func(d *doctored) { d.lost("a", acquire, lock.Released) },
		"written twice":      func(d *doctored) { d.joined("a"); d.joined("a") },
		"a number again": func(d *doctored) {
			d.left(d.joined("a"), lock.Released)
			d.number--
			d.joined("b")
		},
		"written, too late":   func(d *doctored) { d.writtenTooLate() },
		"written, untrusted":  func(d *doctored) { d.truth.writing = writings{"a": {}}; d.joined("a") },
		"known to be missing": func(d *doctored) { d.knownToBeMissing() },
		"two hold":            func(d *doctored) { d.held("a"); d.held("b") },
		"three of two hold":   func(d *doctored) { d.threeOfTwo() },
		"not released":        func(d *doctored) { d.notReleased() },
		"never": func(d *doctored) {
			d.finish("nothing", time.Second, func() bool { return false })
		},
		"a cycle stands": func(d *doctored) { d.cycle() },
		"left behind":    func(d *doctored) { d.stored("a"); d.truth.catchUp(); d.checkOrphans() },
		"not granted": func(d *doctored) {
			d.server.RestoreElsewhere(d.server.Checkpoint())
			d.probe()
		},
		"seen and gone":      func(d *doctored) { d.seenAndGone() },
		"floor too low":      func(d *doctored) { d.floorTooLow() },
		"expired, attended":  func(d *doctored) { d.expiredAttended() },
		"expired, kept":      func(d *doctored) { d.expiredKept() },
		"for too short":      func(d *doctored) { d.forTooShort() },
		"other locks":        func(d *doctored) { d.told(d.joined("a").Narrowed(nil), renew, true) },
		"chose twice":        func(d *doctored) { d.chose(1, "x"); d.truth.narrow(d.truth.last("p").entry, 0) },
		"chose too many":     func(d *doctored) { d.chose(1, "x", "y") },
		"chose what is busy": func(d *doctored) { d.joined("a"); d.chose(1, "x") },
		"restore unnoticed":  func(d *doctored) { d.replicas[0].wire.shown = 1; d.checkNoticed() },
	}
}

func (d *doctored) pass(t time.Duration) { d.run(d.now()+t, func() bool { return false }) }

// events has one stream tell an event, and another, which was there too, that of other kinds.
func (d *doctored) events(kind lock.EventKind, others ...lock.EventKind) {
	at := lock.EventID{Number: 2000, Index: 1}
	one, other := d.world.told.begin("one", lock.Before(2000)), d.world.told.begin(
		"other", lock.Before(2000),
	)
	event := func(kind lock.EventKind) *events.Record {
		return &events.Record{Event: lock.Event{ID: at, Kind: kind, Entry: d.entry("a")}}
	}
	d.world.told.add(one, []*events.Record{event(kind)}, at)
	var given []*events.Record
	for _, k := range others {
		given = append(given, event(k))
	}
	d.world.told.add(other, given, at)
	d.world.told.check(d.world)
}

func (d *doctored) entry(id lock.ID) *lock.Entry {
	return &lock.Entry{
		ID: id, Tenant: "acme", Holder: string(id), TTL: time.Minute, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "x", Mode: lock.Exclusive}},
	}
}

// joined has an entry be written, and time pass.
func (d *doctored) joined(id lock.ID, claims ...lock.Claim) *lock.Entry {
	e := d.entry(id)
	d.number++
	if e.Number = d.number; len(claims) > 0 {
		e.Claims = claims
	}
	d.truth.join(e, d.now())
	d.pass(time.Second)
	return e
}

// chose has an entry that wants some of x, y and z leave all queues but the named.
func (d *doctored) chose(some int, names ...string) {
	claim := func(name string) lock.Claim { return lock.Claim{Name: name, Mode: lock.Exclusive} }
	e := d.entry("p")
	d.number++
	e.Number, e.Set, e.Claims = d.number, true, []lock.Claim{claim("x"), claim("y"), claim("z")}
	e.Choose(some, e.Claims)
	d.truth.join(e, d.now())
	var kept []lock.Claim
	for _, name := range names {
		kept = append(kept, claim(name))
	}
	d.truth.narrow(e.Narrowed(kept), d.now())
}

func (d *doctored) left(e *lock.Entry, why lock.Reason) {
	d.truth.leave(e.ID, why, d.now())
	d.pass(time.Second)
}

// held writes an entry, and reports to its client that it holds.
func (d *doctored) held(id lock.ID, claims ...lock.Claim) *lock.Entry {
	e := d.joined(id, claims...)
	d.told(e, acquire, true)
	return e
}

func (d *doctored) call(k kind, e *lock.Entry) *call {
	return &call{
		kind: k, client: &client{w: d.world}, replica: d.replicas[0], life: d.replicas[0].life,
		began: d.now(), claims: e.Claims, id: e.ID, number: e.Number, asked: &asked{},
	}
}

func (d *doctored) told(e *lock.Entry, k kind, holds bool) {
	c := d.call(k, e)
	c.grant = &service.Grant{Entry: e, Held: holds, ExpiresAt: time.Now().Add(e.TTL)}
	d.truth.check(c)
}

func (d *doctored) askedByNobody() {
	c := d.call(renew, d.joined("a"))
	c.grant = &service.Grant{
		Entry: d.truth.last("a").entry, Held: true, ExpiresAt: time.Now().Add(time.Minute),
		Asked: &view.Asked{Waiting: 1},
	}
	d.truth.check(c)
}

func (d *doctored) fails(id lock.ID, k kind, err error) {
	e := d.entry(id)
	if l := d.truth.last(id); l != nil {
		e = l.entry
	}
	c := d.call(k, e)
	c.err = err
	d.truth.check(c)
}

func (d *doctored) refused(id lock.ID, k kind, code lock.Code) {
	d.fails(id, k, lock.Errorf(code, "doctored"))
}

func (d *doctored) lost(id lock.ID, k kind, why lock.Reason) {
	d.fails(id, k, lock.LostBecause(why))
}

// stored makes the store keep an entry that no client requested.
func (d *doctored) stored(id lock.ID) *lock.Entry {
	e, _, err := d.store.Enqueue(context.Background(), d.entry(id))
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

// writtenTooLate has an attempt be carried out after another one's entry was withdrawn.
func (d *doctored) writtenTooLate() {
	sent := d.now()
	e := d.entry("a")
	e.Request = "a key"
	d.number++
	e.Number = d.number
	d.pass(time.Second)
	d.truth.join(e, d.now())
	d.left(e, lock.Withdrawn)
	d.truth.writing = writings{"a": {sent: sent, trusted: true}}
	again := *e
	d.number++
	again.Number = d.number
	d.truth.join(&again, d.now())
}

// knownToBeMissing has a replica write below what it has heard of.
func (d *doctored) knownToBeMissing() {
	d.joined("a")
	d.missing, d.number = true, 500
	d.truth.writing = writings{"b": {heard: 1001, before: 500, trusted: true}}
	d.joined("b")
}

// closedAndJoined has an entry join a lock after an operator has closed it.
func (d *doctored) closedAndJoined() {
	d.operator.close()
	d.joined("a", lock.Claim{Name: d.lockName(0), Mode: lock.Exclusive})
}

func (d *doctored) threeOfTwo() {
	for _, id := range []lock.ID{"a", "b", "c"} {
		d.held(id, lock.Claim{Name: "x", Mode: lock.Semaphore, Limit: 2, Permits: 1})
	}
}

func (d *doctored) expiredAttended() {
	d.healed = true
	e := d.joined("a")
	c := d.call(goOn, e)
	d.open = append(d.open, c)
	d.pass(2 * e.TTL)
	d.left(e, lock.Expired)
	d.open = nil
}

// expiredKept has an async entry expire while it waits, long after everything healed.
func (d *doctored) expiredKept() {
	d.healed, d.since = true, d.now()
	d.joined("a")
	d.number++
	e := d.entry("b")
	e.Async, e.Number = true, d.number
	d.truth.join(e, d.now())
	d.pass(2 * e.TTL)
	d.left(e, lock.Expired)
}

func (d *doctored) forTooShort() {
	d.healed = true
	d.pass(10 * time.Second)
	c := d.call(acquire, d.joined("a"))
	c.grant = &service.Grant{
		Entry: d.truth.last("a").entry, Held: true, ExpiresAt: time.Now().Add(time.Second),
	}
	d.truth.check(c)
}

func (d *doctored) notReleased() {
	c := d.call(release, d.entry("a"))
	c.held, c.err = &holding{tries: 20}, errors.New("doctored")
	c.client.learn(c)
}

// seenAndGone has a replica not hear of an end.
func (d *doctored) seenAndGone() {
	e := d.stored("a")
	d.pass(time.Second)
	d.replicas[0].wire.cutFeed(time.Hour)
	d.server.End(e, lock.Released)
	d.checkViews()
}

func (d *doctored) floorTooLow() {
	if err := d.server.Raise(1 << 51); err != nil {
		d.t.Fatal(err)
	}
	d.missing = true
	d.operate()
}
