package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	// lateBy is longer than the store waits for an answer, so that what a late follower
	// passes on arrives after it was written again.
	lateBy  = 2500 * time.Millisecond
	heldTTL = 6 * time.Second
	// freeTTL is of entries that are released at once: one that comes back stays.
	freeTTL = 10 * time.Minute
)

// What is done with an entry: it is renewed for a while if one of its attempts was late,
// or released at once. A keyed one has an Idempotency-Key, and a held one half the time.
const (
	held = iota
	keyed
	plain
)

var kinds = [...]string{held: "held", keyed: "keyed", plain: "plain"}

// TestLateFollower has one of three members pass on what it is sent with a delay, so that
// attempts commit after their retries, or after the entry was released. No entry is
// written twice while it is there, who renews keeps it, and none comes back for good. One
// that has a key does not come back at all.
func TestLateFollower(t *testing.T) {
	t.Parallel()
	cluster := startEtcd(t, rig.EtcdConfig{Members: 3, PeerProxies: true})
	w := &followerTest{history: followHistory(t, cluster), late: map[lock.ID]bool{}}
	conn := connect(t, cluster.Endpoints())
	conn.Interfere(w.note)
	w.store = open(t, conn, "/late/")
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 24 {
		workers.Go(func() { w.work(ctx, t, i) })
	}
	follower := 0
	enough := func() bool {
		follower = delayFollower(t, cluster, follower)
		return w.done[held].Load() >= 2 && w.done[keyed].Load() >= 2 &&
			w.done[plain].Load() >= 10 || w.history.isWrong()
	}
	if !within(3*time.Minute, enough) {
		t.Error("too few attempts were late")
	}
	cancel()
	workers.Wait()
	cluster.Member(follower).PeerProxy().Delay(rig.Both, 0)
	if !within(30*time.Second, func() bool { return len(w.history.left(t)) == 0 }) {
		t.Errorf("there are still entries: %v", w.history.left(t))
	}
	t.Logf("late attempts of %d entries that were held for longer than their TTL, and of %d with and "+
		"%d without a key that were released, or given up; %d came back for a moment",
		w.done[held].Load(), w.done[keyed].Load(), w.done[plain].Load(), w.history.check(t))
}

// delayFollower makes a member late that does not lead, if possible the one that is.
func delayFollower(t *testing.T, cluster *rig.Etcd, late int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	leader, err := cluster.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if late == leader {
		cluster.Member(late).PeerProxy().Delay(rig.Both, 0)
		late = (leader + 1) % cluster.Size()
	}
	cluster.Member(late).PeerProxy().Delay(rig.ToClient, lateBy)
	return late
}

func within(bound time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(bound); !ok(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

type followerTest struct {
	store   *etcd.Store
	history *history
	done    [len(kinds)]atomic.Int64 // entries with a late attempt

	mu   sync.Mutex
	late map[lock.ID]bool
}

// note remembers which entries were in a transaction that was not answered in time.
func (w *followerTest) note(
	_ context.Context, r *pb.TxnRequest, do func() (*pb.TxnResponse, error),
) (*pb.TxnResponse, error) {
	resp, err := do()
	if !errors.Is(err, context.DeadlineExceeded) && err == nil {
		return resp, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, put := range etcd.PutsIn(r) {
		w.late[lock.ID(path.Base(string(put.Key)))] = true
	}
	return resp, err
}

func (w *followerTest) wasLate(id lock.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late[id]
}

// work takes and releases a lock of its own.
func (w *followerTest) work(ctx context.Context, t *testing.T, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		kind := [...]int{plain, held, plain, keyed}[i%4]
		e := newEntry(fmt.Sprint("lock-", worker), fmt.Sprintf("%s-%d-%d", kinds[kind], worker, i))
		e.TTL = freeTTL
		if kind == held {
			e.TTL = heldTTL
		}
		if kind == keyed || kind == held && i%8 == 1 {
			e.Request = "the parameters"
		}
		began := time.Now()
		placed := w.acquire(t, e)
		if placed == nil {
			if kind == plain && w.wasLate(e.ID) { // given up: the store takes it back, however late it comes
				w.done[kind].Add(1)
			}
			continue
		}
		late := w.wasLate(e.ID)
		if kind == held && late {
			w.hold(t, placed, began)
		}
		w.release(t, placed, kind == held)
		if late {
			w.done[kind].Add(1)
		}
	}
}

// acquire repeats what has a key until its outcome is known. What has none is taken back
// by the store.
func (w *followerTest) acquire(t *testing.T, e *lock.Entry) *lock.Entry {
	for {
		placed, _, err := w.store.Enqueue(context.WithoutCancel(t.Context()), e)
		if err == nil || !e.Resumable() {
			return placed
		}
		if !errors.Is(err, lock.StoreUnavailable) {
			if e.TTL != heldTTL || !errors.Is(err, lock.Lost) { // it expired meanwhile
				t.Errorf("Enqueue(%s) = %v", e.ID, err)
			}
			return nil
		}
	}
}

// hold renews an entry for longer than the lease of a late attempt lasts. It must be there
// until its TTL after the last renewal that was answered.
func (w *followerTest) hold(t *testing.T, e *lock.Entry, began time.Time) {
	renewed := began
	for end := time.Now().Add(heldTTL + 3*time.Second); time.Now().Before(end); <-time.After(
		time.Second,
	) {
		at := time.Now()
		err := w.store.Renew(context.WithoutCancel(t.Context()), e)
		switch {
		case err == nil:
			renewed = at
		case time.Since(renewed) > e.TTL:
			return // the machine was too slow to hold it
		case errors.Is(err, lock.Lost):
			t.Errorf("%s is lost %v after its last renewal", e.ID, time.Since(renewed))
			return
		}
	}
}

// release removes an entry. One that an attempt whose outcome is not known may have
// removed, or that may have expired, may be gone.
func (w *followerTest) release(t *testing.T, e *lock.Entry, mayBeGone bool) {
	for {
		err := w.store.Remove(context.WithoutCancel(t.Context()), e, lock.Released)
		switch {
		case err == nil, mayBeGone && errors.Is(err, lock.Lost):
			return
		case !errors.Is(err, lock.StoreUnavailable):
			t.Errorf("Remove(%s) = %v", e.ID, err)
			return
		}
		mayBeGone = true
	}
}

// history is what etcd says became of each entry.
type history struct {
	client *clientv3.Client
	done   chan struct{}

	mu       sync.Mutex
	there    map[string]bool // by key; false once it has gone
	wrong    []string
	cameBack int
}

func followHistory(t *testing.T, cluster *rig.Etcd) *history {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	h := &history{client: client, done: make(chan struct{}), there: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	events := client.Watch(ctx, "/late/entries/", clientv3.WithPrefix(), clientv3.WithRev(1))
	go func() {
		defer close(h.done)
		for r := range events {
			h.add(r, ctx.Err() != nil)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-h.done
		closing(t, "the client of the history", client.Close)
	})
	return h
}

func (h *history) add(r clientv3.WatchResponse, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := r.Err(); err != nil && !over {
		h.wrong = append(h.wrong, fmt.Sprint("the history is not complete: ", err))
	}
	for _, event := range r.Events {
		key := string(event.Kv.Key)
		there, known := h.there[key]
		h.there[key] = event.Type == clientv3.EventTypePut
		switch {
		case !h.there[key] || !known:
		case there:
			h.wrong = append(h.wrong, key+" was written again while it was there")
		case strings.HasPrefix(path.Base(key), kinds[keyed]):
			h.wrong = append(h.wrong, key+" came back, although it has a key")
		default:
			h.cameBack++
		}
	}
}

// left returns the entries that there are.
func (h *history) left(t *testing.T) (keys []string) {
	t.Helper()
	resp, err := h.client.Get(
		t.Context(), "/late/entries/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// isWrong reports whether nothing more has to be seen.
func (h *history) isWrong() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.wrong) > 0
}

// check returns how many entries came back for a moment.
func (h *history) check(t *testing.T) int {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, what := range h.wrong {
		t.Error(what)
	}
	return h.cameBack
}
