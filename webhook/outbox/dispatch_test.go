package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// slowRecords answer when a test lets them. A nil channel answers never.
type slowRecords struct {
	store.RecordStore
	puts, deletes chan struct{}
	full          bool
	deleted       int
	version       uint64
	listed        []store.Record
	foreign       []byte // is in the store, under another version; nil does not matter
}

func (r *slowRecords) Get(context.Context, store.RecordKey) (store.Record, error) {
	return store.Record{Value: r.foreign, Version: 70}, nil
}

func (r *slowRecords) List(context.Context, store.RecordQuery) (store.RecordPage, error) {
	return store.RecordPage{Records: r.listed}, nil
}

func (r *slowRecords) Put(ctx context.Context, _ store.RecordPut) (uint64, error) {
	switch {
	case r.full:
		return 0, &lock.Error{Code: lock.StoreUnavailable}
	case r.foreign != nil:
		return 0, &lock.Error{Code: lock.Changed}
	}
	select {
	case <-r.puts:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	r.version++
	return r.version, nil
}

func (r *slowRecords) Delete(ctx context.Context, _ store.RecordKey, _ uint64) error {
	select {
	case <-r.deletes:
		r.deleted++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type oneSecret struct{ Subscriptions }

func (oneSecret) Secrets(*subscription.Subscription, time.Time) []webhook.Secret {
	return make([]webhook.Secret, 1)
}

// accepting is a receiver that takes 5 ms, or longer.
type accepting struct {
	sent  []string
	takes time.Duration
}

func (s *accepting) Send(ctx context.Context, _ webhook.Target, m webhook.Message) webhook.Result {
	if store.Pause(ctx, max(s.takes, 5*time.Millisecond)) != nil {
		return webhook.Result{Outcome: webhook.Interrupted}
	}
	s.sent = append(s.sent, m.ID)
	return webhook.Result{Outcome: webhook.Delivered, Status: 204}
}

type noMetrics struct{}

func (noMetrics) WebhookAttempted(context.Context, string, time.Duration) {}

// dispatching is a dispatch whose owner a test plays.
type dispatching struct {
	*dispatch
	records *slowRecords
	sender  *accepting
	target  *target
}

func dispatches(t *testing.T, test func(t *testing.T, w *dispatching)) {
	bubble.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		close(answers)
		records, sender := &slowRecords{puts: answers, deletes: answers}, &accepting{}
		o := New(Config{
			Records: records, Subscriptions: oneSecret{}, Sender: sender, Metrics: noMetrics{},
			Logger: slog.New(slog.DiscardHandler), Rand: rand.Float64,
		})
		o.pool = webhook.NewPool(webhook.PoolConfig{})
		defer o.pool.Close()
		w := newDispatch(&shard{Outbox: o, name: shardName(0)}, 7)
		w.ctx, w.lose = context.WithCancel(t.Context())
		defer w.ledger.all.Wait()
		defer w.ledger.end()
		defer w.lose()
		w.lease.renewed(time.Now().Add(time.Hour))
		to := w.targets.of("acme", "s1")
		to.sub = &subscription.Subscription{ID: "s1", Tenant: "acme", URL: "https://x.example"}
		to.allow()
		test(t, &dispatching{w, records, sender, to})
	})
}

// run does what an owner does, for so long.
func (w *dispatching) run(d time.Duration) {
	for over := time.After(d); ; {
		select {
		case f := <-w.ledger.brought:
			f()
		case <-time.After(tick):
			w.flushMissed(time.Now())
		case <-over:
			return
		}
		for now := time.Now(); w.due.Len() > 0 && !w.due.First().due.After(now); {
			w.attempt(w.due.Pop())
		}
	}
}

func (w *dispatching) misses(number uint64) {
	w.note(w.target, gapAt(lock.EventID{Number: number, Index: 1}), "x", &item{open: 1})
}

// TestGapWhileItsRecordIsErased: what is missed while an earlier events.missed, which was
// delivered, is being deleted, is sent too.
func TestGapWhileItsRecordIsErased(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		answers := make(chan struct{})
		w.records.deletes = answers
		w.misses(5)
		w.run(flushPause + time.Second)
		w.misses(9)
		close(answers)
		w.run(2 * flushPause)
		if len(w.sender.sent) != 2 || len(w.target.pending) != 0 {
			t.Errorf("sent %q, pending %v", w.sender.sent, w.target.pending)
		}
	})
}

// TestGrownGapIsNotSentInALoop: an events.missed that was delivered, while more is missed than it
// said, is sent again when the rest is written.
func TestGrownGapIsNotSentInALoop(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		answers := make(chan struct{})
		w.records.puts = answers
		w.misses(5)
		w.flushMissed(time.Now())
		w.misses(9)
		w.run(2 * time.Second)
		if n := len(w.sender.sent); n != 1 {
			t.Errorf("sent %d times while the store does not answer", n)
		}
		close(answers)
		w.run(2 * flushPause)
		whole := missedID(gapAt(lock.EventID{Number: 9, Index: 1}))
		if len(w.target.pending) != 0 || slices.Contains(w.sender.sent[:1], whole) {
			t.Errorf("sent %q, pending %v", w.sender.sent, w.target.pending)
		}
	})
}

// TestFullStoreLetsDeliveriesGo: writes that a full store rejects leave deletions their slots,
// which make space.
func TestFullStoreLetsDeliveriesGo(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		w.records.full = true
		for range writesAtOnce {
			w.ledger.save(&cell{}, []byte("x"), func() {})
		}
		w.ledger.erase(&cell{version: 5}, func() {})
		w.run(5 * time.Second)
		if w.records.deleted != 1 || w.ledger.idle() {
			t.Errorf("%d deletions, idle %v", w.records.deleted, w.ledger.idle())
		}
	})
}

// TestTakenOverDeliveriesCountTheirBytes: the bound in bytes holds over a take-over.
func TestTakenOverDeliveriesCountTheirBytes(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		f := form{ID: "9-1", Kind: "lock.acquired", Payload: []byte(`{"data":{}}`), Steps: 1}
		w.records.listed = []store.Record{{
			RecordKey: w.keyOf(w.target, f.ID), Value: store.Encode(&f), Version: 1,
		}}
		if err := w.loadPending(); err != nil || w.targets.load[""].bytes != len(f.Payload) {
			t.Errorf("%v, %+v", err, w.targets.load)
		}
	})
}

// TestWaitingCallbacksAreBounded: if too many wait, the record of a callback says failed, and the
// log counts it.
func TestWaitingCallbacksAreBounded(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		own, to := &owner{out: w.dispatch}, w.targets.of("acme", Callbacks)
		for i := range maxOfTarget {
			to.pending[strconv.Itoa(i)] = &delivery{}
		}
		granted := lock.EventOfGrant(&lock.Entry{
			ID: "e", Tenant: "acme", Number: 7, TTL: time.Hour, Claims: []lock.Claim{{Name: "a"}},
			Callback: &lock.Callback{URL: "https://x.example"},
		})
		granted.ID, granted.At = lock.EventID{Number: 9, Index: 1}, time.Now()
		for _, full := range []int{0, maxWaitingInAll} {
			w.targets.waiting, granted.Entry.ID = full, lock.ID(strconv.Itoa(full))
			if waits := own.postpone(to, &granted, &item{id: granted.ID}); waits != (full == 0) {
				t.Errorf("with %d it waits: %t", full, waits)
			}
		}
		own.call(to, &granted, &item{id: granted.ID})
		if len(to.Recent) != 1 || to.Recent[0].State != webhook.StateFailed || to.skipped != 1 {
			t.Errorf("recorded %+v, counted %d", to.Recent, to.skipped)
		}
		if own.out.logSkipped(to, time.Now()); to.skipped != 0 || to.Behind != "9-0" {
			t.Errorf("%d are not logged, the position is %q", to.skipped, to.Behind)
		}
	})
}

// TestGivenUpRecordStays: the record of a delivery that failed goes only after it is written that
// its subscription gets events.missed.
func TestGivenUpRecordStays(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		answers := make(chan struct{})
		w.records.puts, w.sender.takes = answers, 10*time.Second
		d := &delivery{cell: cell{key: w.keyOf(w.target, "9-1"), version: 5}, target: w.target}
		w.targets.add(d)
		w.giveUp(d, gapAt(lock.EventID{Number: 9, Index: 1}), "x")
		w.run(flushPause + time.Second)
		if w.records.deleted != 0 {
			t.Error("the record is gone, and events.missed is not written")
		}
		close(answers)
		w.run(time.Second)
		if w.records.deleted != 1 {
			t.Error("the record stays after events.missed is written")
		}
		w.run(10 * time.Second)
		if w.records.deleted != 2 || len(w.target.pending) != 0 { // that of events.missed, too
			t.Errorf("%d records are deleted; pending %v", w.records.deleted, w.target.pending)
		}
	})
}

// TestGrownGapIsNotSettled: what is missed while an events.missed is written waits for the next
// write of it.
func TestGrownGapIsNotSettled(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		answers := make(chan struct{})
		w.records.puts = answers
		grown := &item{}
		w.misses(5)
		w.flushMissed(time.Now())
		w.note(w.target, gapAt(lock.EventID{Number: 9, Index: 1}), "x", grown)
		answers <- struct{}{}
		w.run(tick / 2)
		if grown.open != 1 {
			t.Error("it is settled before it is written")
		}
		close(answers)
		w.run(2 * flushPause)
		if grown.open != 0 {
			t.Error("it is not settled")
		}
	})
}

// TestCursorGrowsWhileItIsWritten: what the owner reads while the cursor is written is not part of
// what the store has.
func TestCursorGrowsWhileItIsWritten(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		answers := make(chan struct{})
		w.records.puts = answers
		c := &w.cursor
		c.known, c.soon, c.last = true, true, lock.EventID{Number: 5}
		c.write(w.ledger, time.Now())
		c.soon, c.last = true, lock.EventID{Number: 9}
		close(answers)
		w.run(cursorPause + tick)
		if c.at.Number != 5 {
			t.Errorf("the store has %v", c.at)
		}
		c.write(w.ledger, time.Now())
		w.run(tick)
		if c.at.Number != 9 || w.records.version != 2 {
			t.Errorf("after %d writes the store has %v", w.records.version, c.at)
		}
	})
}

// TestForeignRecordLosesTheShard: a record that is not as the owner would write it is another
// owner's. A record that is, is the owner's own write.
func TestForeignRecordLosesTheShard(t *testing.T) {
	for text, lost := range map[string]bool{"mine": false, "foreign": true} {
		dispatches(t, func(t *testing.T, w *dispatching) {
			w.records.foreign = []byte(text)
			c, done := &cell{version: 3}, false
			w.ledger.save(c, []byte("mine"), func() { done = true })
			w.run(time.Second)
			if w.isLost != lost || done == lost || !lost && c.version != 70 {
				t.Errorf("%s: lost %t, done %t, version %d", text, w.isLost, done, c.version)
			}
		})
	}
}

// TestEventsBeforeTheSubscription: they are not sent, also if a tenant asks for one.
func TestEventsBeforeTheSubscription(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		w.target.sub.Events, w.target.sub.Locks = []lock.EventKind{lock.EventAcquired}, "*"
		w.target.filter, w.target.From = filterOf(w.target.sub), 10
		own := &owner{out: w.dispatch}
		for number := uint64(9); number <= 11; number++ {
			e := lock.EventOfGrant(&lock.Entry{
				ID: "e", Tenant: "acme", Number: number, Claims: []lock.Claim{{Name: "a"}},
			})
			e.ID = lock.EventID{Number: number, Index: 1}
			own.offer(w.target, &e, &item{id: e.ID})
			own.offer(w.target, &e, &item{id: e.ID, again: true})
		}
		w.run(time.Second)
		if !slices.Equal(w.sender.sent, []string{"11-1"}) {
			t.Errorf("sent %q", w.sender.sent)
		}
	})
}

// TestNewOwnerBeginsInOrder: the deliveries that the owner before had not attempted are sent in the
// order of their events, each when the events before it are read.
func TestNewOwnerBeginsInOrder(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		for _, id := range []string{"10-1", "9-1"} { // as the store lists them
			w.stored(&form{ID: id, Payload: []byte(`{"data":{"lock":"a"}}`)})
		}
		if err := w.loadPending(); err != nil {
			t.Fatal(err)
		}
		for number := uint64(9); number <= 10; number++ {
			w.cursor.reached(lock.EventID{Number: number, Index: 1})
			w.startLate()
			w.run(time.Second)
			if want := []string{"9-1", "10-1"}[:number-8]; !slices.Equal(w.sender.sent, want) {
				t.Errorf("up to %d sent %q, want %q", number, w.sender.sent, want)
			}
		}
	})
}

// stored has a delivery in the store.
func (w *dispatching) stored(f *form) {
	f.Kind, f.Made = string(lock.EventAcquired), cmp.Or(f.Made, time.Now().UnixMilli())
	w.records.listed = append(w.records.listed, store.Record{
		RecordKey: w.keyOf(w.target, f.ID), Value: store.Encode(f), Version: 1,
	})
}

// TestOldDeliveryIsMissed: a delivery that was pending for too long is not attempted any more.
func TestOldDeliveryIsMissed(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		ages := map[string]time.Duration{"8-1": maxAge - time.Hour, "9-1": maxAge + time.Hour}
		for id, age := range ages {
			w.stored(&form{
				ID: id, Payload: []byte(`{"data":{}}`), Steps: 1, Made: time.Now().Add(-age).UnixMilli(),
			})
		}
		if err := w.loadPending(); err != nil {
			t.Fatal(err)
		}
		w.run(2 * flushPause)
		slices.Sort(w.sender.sent)
		want := []string{"8-1", missedID(gapAt(lock.EventID{Number: 9, Index: 1}))}
		if !slices.Equal(w.sender.sent, want) {
			t.Errorf("sent %q, want %q", w.sender.sent, want)
		}
	})
}

// TestClaimWritesTheCursor: a new owner writes the cursor, so that the one before can write it no
// more by the version that it knows.
func TestClaimWritesTheCursor(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		if _, err := w.cursor.claim(t.Context(), w.ledger); err != nil {
			t.Fatal(err)
		}
		if w.records.version != 1 || w.cursor.version != 1 {
			t.Errorf("written %d times, the version is %d", w.records.version, w.cursor.version)
		}
	})
}

// TestTooLateIsNotDecidedWithoutTheLease: a replica that may be cut off does not know that an entry
// holds no more, so it gives no callback up.
func TestTooLateIsNotDecidedWithoutTheLease(t *testing.T) {
	dispatches(t, func(t *testing.T, w *dispatching) {
		w.lease.renewed(time.Now().Add(-shardTTL))
		d := &delivery{cell: cell{key: w.keyOf(w.target, "x")}, target: w.target}
		d.Call, d.Made = &callbackCall{Held: true}, time.Now().UnixMilli()
		d.progress = webhook.Progress{State: webhook.StatePending, NotAfter: time.Now()}
		w.targets.add(d)
		w.attempt(d)
		if !d.Queued() || d.over || len(w.sender.sent) > 0 {
			t.Errorf("queued %t, over %t, sent %q", d.Queued(), d.over, w.sender.sent)
		}
	})
}
