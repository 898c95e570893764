package handlers

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/telemetry"
)

// How many may watch at once, and how much of it. What is shown to a client is kept in
// memory until it is shown something else.
const (
	maxWatches           = 100 // at this replica
	maxWatchesOfTenant   = 50
	maxWatchesOfOperator = 20
	watchedBytes         = 256 << 10 // of the rows of a list
	watchedWaiters       = 100       // of one lock
)

// watchBeat is the time between two signs of life of a watch at most. Somebody looks at what it shows, and is to
// learn soon that the server has stopped to answer.
const watchBeat = 5 * time.Second

// watches counts who watches, and spaces out the work for them.
type watches struct {
	mu         sync.Mutex
	all        int
	byTenant   map[string]int
	byOperator map[string]int       // by tenant and subject
	turns      map[string]time.Time // by what is watched, when its answer is made

	// By the tenant of those who may see only some names, which may take long to find and is not to make others
	// wait, and "" of all others.
	paces map[string]*watchPace
}

// watchPace spaces out answers.
type watchPace struct {
	free time.Time     // when the next answer may be made
	took time.Duration // the last one
}

func newWatches() *watches {
	return &watches{byOperator: map[string]int{}, byTenant: map[string]int{}, turns: map[string]time.Time{}, paces: map[string]*watchPace{}}
}

// pace returns that of a tenant, or with "" of all who have none of their own. The caller holds mu.
func (w *watches) pace(whose string) *watchPace {
	p := w.paces[whose]
	if p == nil {
		p = &watchPace{}
		w.paces[whose] = p
	}
	return p
}

// take counts a watch. Errors: quota_exceeded, overloaded.
func (w *watches) take(tenant, operator string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := func(code lock.Code, detail string) error {
		return &lock.Error{Code: code, Detail: detail, RetryAfter: 5 * time.Second}
	}
	switch {
	case w.byOperator[operator] >= maxWatchesOfOperator:
		return full(lock.QuotaExceeded, "this operator watches 20 times at this replica, and may not more often")
	case w.byTenant[tenant] >= maxWatchesOfTenant:
		return full(lock.QuotaExceeded, "the tenant's operators watch 50 times at this replica, and may not more often")
	case w.all >= maxWatches:
		return full(lock.Overloaded, "100 watch at this replica; try another")
	}
	w.all++
	w.byTenant[tenant]++
	w.byOperator[operator]++
	return nil
}

func (w *watches) give(tenant, operator string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.byTenant[tenant]--; w.byTenant[tenant] == 0 {
		delete(w.byTenant, tenant)
		delete(w.paces, tenant)
	}
	if w.byOperator[operator]--; w.byOperator[operator] == 0 {
		delete(w.byOperator, operator)
	}
}

// turn returns for how long to wait before what is watched is made, and whether nobody else has
// that turn yet: all who watch the same have one. All turns of one pace together take a quarter of one
// processor at most: who watches what takes long is told less often.
func (w *watches) turn(key, whose string, now time.Time) (wait time.Duration, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over := func(at time.Time) bool { return board.Drawing(at) < board.Drawing(now) }
	if at, taken := w.turns[key]; taken && !over(at) {
		return max(0, at.Sub(now)), false
	}
	maps.DeleteFunc(w.turns, func(_ string, at time.Time) bool { return over(at) })
	at, p := now, w.pace(whose)
	if p.free.After(now) {
		at = p.free
	}
	p.free, w.turns[key] = at.Add(4*p.took), at
	return at.Sub(now), true
}

func (w *watches) done(whose string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace(whose).took = took
}

// watch shows something, and then what changes of it.
//
// @Summary     Watch something change
// @ID          watch
// @Description A stream of server-sent events: first a `snapshot` with the answer that a GET of the view would have, and the keys of its rows in `order`; then, four times a second at most (of `tenants` and `blocking` once) and only when something has changed, a `delta`. In a delta, `rows` has those rows that are new or other, by key; `order` is all keys again, if they are not the same in the same order, and rows that are not in it are gone; `page` is the rest of the answer, if it has changed. That `store_lost_since` comes or goes is told, too, even by a delta of nothing else. Keys are `<tenant>/<name>` of a lock, the name of a tenant, and the id of an entry that waits. What else can be watched is all in `page`. Lists take about 256 KiB at most, and of one lock the first 100 that wait are shown. Comments come every 5 seconds. It goes on until the client ends it, the credential expires or is withdrawn, the server shuts down, or the client takes nothing for 10 seconds; a comment says which, but for a client that takes nothing: its connection is cut. It cannot be resumed: a new one begins with a snapshot. An operator may watch 20 times at a server, those of a tenant 50 times, and all 100 times. If much is watched on a large server, deltas come less often.
// @Tags        admin
// @Produce     text/event-stream
// @Security    bearer[admin]
// @Security    bearer[tenant-admin]
// @Param       view   query string true  "What" Enums(overview, locks, lock, holders, series, heatmap, tenants, blocking)
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`. Of a lock it must be there"
// @Param       name   query string false "Of a lock, its name"
// @Param       search query string false "As the list has it"
// @Param       state  query string false "As the list has it" Enums(held, contended)
// @Param       holder query string false "As the list has it"
// @Param       sort   query string false "As the list has it" Enums(name, -name, waiters, -waiters, oldest_wait, -oldest_wait, held_for, -held_for, utilization, -utilization) default(name)
// @Param       limit  query int    false "As the list has it" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "As the list has it"
// @Success     200 {object} api.WatchMessage "The `data` of each message"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     429 {object} api.Problem "quota_exceeded, overloaded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, draining, memory_full, fence_floor_required"
// @Router      /admin/watch [get]
func (a *endpoints) watch(r *request) error {
	make, slow, err := r.watchedView()
	if err != nil {
		return err
	}
	if err := r.skipBody(); err != nil {
		return err
	}
	select {
	case <-a.Console.Draining():
		return &lock.Error{Code: lock.Draining, Detail: "this replica is shutting down; go on at another, or here when it is back", RetryAfter: time.Second}
	default:
	}
	operator := r.tenant() + "/" + r.principal.Subject
	if err := a.watches.take(r.tenant(), operator); err != nil {
		return err
	}
	defer a.watches.give(r.tenant(), operator)
	w := &watcher{sender: newSender(r, telemetry.StreamView), key: r.sharedKey(), slow: slow, body: func() (any, error) { return make(watchedBytes) }}
	w.every = min(w.every, watchBeat)
	first, err := r.rendered(w.key, w.body)
	if err != nil {
		return err
	}
	defer r.lasts()()
	w.run(first)
	return nil
}

// watcher tells one client what changes.
type watcher struct {
	sender
	key  string
	slow bool // told once a second at most
	body func() (any, error)
	told *parts

	missed  int   // how often nothing could be made
	because error // the last time
}

func (w *watcher) run(first *rendering) {
	stop, more := w.begin()
	if !more {
		return
	}
	defer stop()
	w.write([]byte(reconnect))
	w.told = first.split()
	w.snapshot(first)
	first = nil
	why := ""
	for why == "" && w.err == nil {
		if why = w.pause(time.Until(nextTold(time.Now(), w.slow))); why == "" {
			why = w.tell()
		}
	}
	if w.missed > 0 {
		w.request.note(slog.Int("missed", w.missed), slog.Any("because", w.because))
	}
	w.end(why)
}

// nextTold is when a watcher is told next what has changed: at the next drawing, or at the next of a new second.
func nextTold(now time.Time, slow bool) time.Time {
	next := board.NextDrawing(now)
	for slow && next.Sub(next.Truncate(time.Second)) >= board.Pace {
		next = board.NextDrawing(next)
	}
	return next
}

// tell sends what has changed. What cannot be made at the moment is made the next time.
func (w *watcher) tell() (why string) {
	a := w.request.endpoints
	now := a.pages.recent(w.key, time.Now())
	if now == nil {
		if w.request.alone() && w.request.owes() {
			return "" // until that is paid for
		}
		whose := w.request.watchPace()
		wait, first := a.watches.turn(w.key, whose, time.Now())
		if why = w.pause(wait); why != "" {
			return why
		}
		began := time.Now()
		var err error
		if now, err = w.request.rendered(w.key, w.body); err != nil {
			w.missed, w.because = w.missed+1, err
			return ""
		}
		if first {
			a.watches.done(whose, time.Since(began))
		}
	}
	next := now.split()
	w.delta(next)
	w.told = next
	return ""
}

// pause waits, and returns why the stream ends, if it does.
func (w *watcher) pause(d time.Duration) (why string) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-w.expires:
			return tokenExpired
		case <-w.request.endpoints.Console.Draining():
			return serverDrains
		case <-w.request.context().Done():
			return w.request.whyGone()
		case <-w.beat.C:
			w.write([]byte(":\n\n"))
			w.flush()
			w.beat.Reset(w.every)
			if w.err != nil {
				return clientStalls
			}
		case <-t.C:
			return ""
		}
	}
}
