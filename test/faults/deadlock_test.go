package faults_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/waits"
	"github.com/fencepost/fencepost/test/rig"
)

// TestDeadlockModel has workers that name themselves take locks of all modes, alone
// and in sets, through two replicas, up to three requests, releases and clients
// that go away at a moment. After each moment what they were told must be what a
// brute-force model says for some order in which it can have happened: nobody is
// refused who could have waited, and nobody waits for ever. Several tenants have
// workers and locks of the same names. Nothing is broken on purpose; a round in which
// a replica lost its store, because the machine was busy, is not judged.
func TestDeadlockModel(t *testing.T) {
	length, enough := time.Duration(count(15, 300))*time.Second, count(20, 400)
	s := newStand(t, length+seenWithin+5*time.Minute)
	var mu sync.Mutex
	var sum tally
	seen := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sum.deadlocks >= enough && sum.doubtful >= enough/4
	}
	ctx, stop := s.until(length, seen)
	defer stop()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := 0; ctx.Err() == nil && !t.Failed(); round++ {
				p := s.play(fmt.Sprintf("tenant-%d", i), round)
				p.round(40)
				mu.Lock()
				sum.add(p.tally)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d requests in %d moments: %d granted at once, %d later, %d refused for a deadlock, %d clients went away; %d moments had more than one order; %d rounds were not judged",
		sum.requests, sum.moments, sum.atOnce, sum.later, sum.deadlocks, sum.away, sum.doubtful, sum.void)
	if !seen() {
		t.Errorf("too few for the run to count, want at least %d deadlocks", enough)
	}
	s.readLogs()
}

// tally counts what happened.
type tally struct{ requests, moments, atOnce, later, deadlocks, away, doubtful, void int }

func (t *tally) add(other tally) {
	t.requests += other.requests
	t.moments += other.moments
	t.atOnce += other.atOnce
	t.later += other.later
	t.deadlocks += other.deadlocks
	t.away += other.away
	t.doubtful += other.doubtful
	t.void += other.void
}

// play is one tenant's workers, and what can be true of them: the worlds that
// agree with everything that they were told.
type play struct {
	*stand
	tally
	tenant  string
	bearer  string
	http    *http.Client
	prefix  string // of the locks and workers of this round
	serial  int
	asked   map[int]*asked
	worlds  []waits.World
	journal []string
	cut     atomic.Bool // a replica lost its store: the round is not judged
}

// asked is one request on its way.
type asked struct {
	*waits.Request
	replica int
	ttl     int // seconds; 60 if 0
	wait    int // seconds; 300 if 0
	cancel  context.CancelFunc
	done    chan struct{}
	counted bool

	// When done is closed.
	status int // 0 without an answer
	answer struct {
		ID, Token, Code string
		Cycle           []cycleStep
	}
	err error
}

type cycleStep struct {
	Holder   string `json:"holder"`
	WaitsFor string `json:"waits_for"`
	InTheWay string `json:"in_the_way"`
}

func (s *stand) play(tenant string, round int) *play {
	bearer, err := rig.SignToken(secret, tenant, "locks:read locks:write", "worker")
	s.must(err)
	return &play{
		stand: s, tenant: tenant, bearer: bearer, prefix: fmt.Sprintf("%d:", round), asked: map[int]*asked{}, worlds: make([]waits.World, 1),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
}

// round plays moments and then lets everyone who holds let go, until nobody is
// left: nobody may wait for ever.
func (p *play) round(moments int) {
	defer p.http.CloseIdleConnections()
	defer p.leave()
	for range moments {
		if !p.moment(p.deeds()...) {
			return
		}
	}
	for len(p.asked) > 0 {
		held := p.having(http.StatusCreated)
		if len(held) == 0 {
			p.fail("nobody holds, and these wait:")
			return
		}
		if !p.moment(p.release(held[0])) {
			return
		}
	}
}

// leave takes back what a failed round has left.
func (p *play) leave() {
	for _, a := range p.asked {
		a.cancel()
		<-a.done
	}
}

// deed is something that is done at a moment, and what it makes of a world. The
// world's verdict is kept by the id of the request.
type deed struct {
	text string
	note func() // before all deeds of the moment are done at once
	do   func()
	in   func(waits.World, map[int]waits.Verdict) waits.World
}

// deeds are one to three things that happen at once. No client goes away when its
// answer could be on its way: nobody could tell whether it arrived.
func (p *play) deeds() []deed {
	var all []deed
	held, waiting := p.having(http.StatusCreated), p.having(0)
	for range 1 + rand.IntN(3) {
		switch n := rand.IntN(10); {
		case n < 3 && len(held) > 0, len(p.asked) > 14 && len(held) > 0:
			i := rand.IntN(len(held))
			all = append(all, p.release(held[i]))
			held, waiting = slices.Delete(held, i, i+1), nil
		case n == 3 && len(waiting) > 0:
			all = append(all, p.goAway(waiting[rand.IntN(len(waiting))]))
			held, waiting = nil, nil
		default:
			all = append(all, p.ask(p.draw()))
		}
	}
	return all
}

// having returns the requests that got this answer.
func (p *play) having(status int) []*asked {
	var all []*asked
	for _, a := range p.asked {
		if _, now := a.outcome(); now == status {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *asked) int { return a.ID - b.ID })
	return all
}

// outcome returns whether there is an answer, and which.
func (a *asked) outcome() (done bool, status int) {
	select {
	case <-a.done:
		return true, a.status
	default:
		return false, 0
	}
}

// draw asks for one to three of six locks, as one of five workers or as nobody.
func (p *play) draw() *waits.Request {
	p.serial++
	r := &waits.Request{ID: p.serial}
	if n := rand.IntN(6); n > 0 {
		r.Holder = fmt.Sprint("worker-", n)
	}
	names := lockNames()
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:[]int{1, 1, 1, 2, 3}[rand.IntN(5)]] {
		c := waits.Claim{Name: p.prefix + name, Mode: []string{"exclusive", "exclusive", "shared"}[rand.IntN(3)]}
		if limit, err := strconv.Atoi(name[1:]); err == nil {
			c.Mode, c.Limit = "semaphore", limit
		}
		r.Claims = append(r.Claims, c)
	}
	return r
}

func (p *play) ask(r *waits.Request) deed {
	a := &asked{Request: r, replica: rand.IntN(2), done: make(chan struct{})}
	return deed{
		text: fmt.Sprintf("%d by %q asks at %d for %v", r.ID, r.Holder, a.replica, r.Claims),
		note: func() {
			p.asked[r.ID] = a
			p.requests++
		},
		do: func() {
			var ctx context.Context
			ctx, a.cancel = context.WithCancel(p.ctx)
			go func() {
				defer close(a.done)
				a.status, a.err = p.send(ctx, a)
			}()
		},
		in: func(w waits.World, verdicts map[int]waits.Verdict) waits.World {
			w, verdicts[r.ID] = w.Come(r)
			return w
		},
	}
}

func (p *play) send(ctx context.Context, a *asked) (status int, err error) {
	body := map[string]any{"wait_seconds": cmp.Or(a.wait, 300), "ttl_seconds": cmp.Or(a.ttl, 60), "metadata": map[string]string{"number": fmt.Sprint(a.ID)}}
	if a.Holder != "" {
		body["holder"] = p.prefix + a.Holder
	}
	path := "/locksets"
	if len(a.Claims) > 1 {
		body["locks"] = a.Claims
	} else {
		path, body["mode"] = "/locks/"+a.Claims[0].Name, a.Claims[0].Mode
		if a.Claims[0].Limit > 0 {
			body["limit"] = a.Claims[0].Limit
		}
	}
	return p.exchange(ctx, a.replica, http.MethodPost, path, "", body, &a.answer)
}

func (p *play) exchange(ctx context.Context, replica int, method, path, token string, body, answer any) (status int, err error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, p.urls()[replica]+path, &text)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+p.bearer)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Lock-Token", token)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return resp.StatusCode, nil
}

func (p *play) release(a *asked) deed {
	path := "/locks/" + a.Claims[0].Name
	if len(a.Claims) > 1 {
		path = "/locksets/" + a.answer.ID
	}
	replica := rand.IntN(2)
	return deed{
		text: fmt.Sprintf("%d lets go at %d", a.ID, replica),
		note: func() { delete(p.asked, a.ID) },
		do: func() {
			status, err := p.exchange(p.ctx, replica, http.MethodDelete, path, a.answer.Token, struct{}{}, &struct{}{})
			if p.cut.CompareAndSwap(false, status == http.StatusServiceUnavailable); status != http.StatusNoContent && !p.cut.Load() {
				p.t.Errorf("release of %d: %d, %v", a.ID, status, err)
			}
		},
		in: func(w waits.World, _ map[int]waits.Verdict) waits.World { return w.Go(a.ID) },
	}
}

// goAway has a client give up.
func (p *play) goAway(a *asked) deed {
	return deed{
		text: fmt.Sprintf("%d goes away", a.ID),
		note: func() {
			p.away++
			delete(p.asked, a.ID)
		},
		do: func() {
			a.cancel()
			if <-a.done; a.status != 0 {
				p.t.Errorf("%d went away and was told %d", a.ID, a.status)
			}
		},
		in: func(w waits.World, _ map[int]waits.Verdict) waits.World { return w.Go(a.ID) },
	}
}

// moment does all deeds at once and then waits until what the requests were told
// is what some order of the deeds makes of some world.
func (p *play) moment(deeds ...deed) (ok bool) {
	p.moments++
	texts := make([]string, 0, len(deeds))
	for _, d := range deeds {
		texts = append(texts, d.text)
	}
	p.journal = append(p.journal, strings.Join(texts, " | "))
	doAll(deeds)
	after := ordersFrom(p.worlds, deeds)
	var exact []outcome
	for end := time.Now().Add(within(20 * time.Second)); len(exact) == 0; pause(p.ctx, 5*time.Millisecond) {
		if exact = p.agree(after); len(exact) > 0 {
			exact = p.confirm(exact)
		}
		if p.cut.Load() || len(p.having(http.StatusServiceUnavailable)) > 0 {
			p.void++
			return false
		}
		if time.Now().After(end) {
			p.fail("no order of the last deeds makes this of:")
			return false
		}
	}
	if len(after) > 1 {
		p.doubtful++
	}
	p.worlds = worldsOf(exact)
	return p.account(exact)
}

func ordersFrom(worlds []waits.World, deeds []deed) []outcome {
	var all []outcome
	for _, w := range worlds {
		all = append(all, orders(outcome{w, nil}, deeds)...)
	}
	return all
}

func doAll(deeds []deed) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, d := range deeds {
		d.note()
	}
	for _, d := range deeds {
		all.Go(d.do)
	}
}

// outcome is a world and the verdicts on the requests that came last.
type outcome struct {
	world    waits.World
	verdicts map[int]waits.Verdict
}

// orders returns what every order of the deeds makes of a world.
func orders(from outcome, deeds []deed) []outcome {
	if len(deeds) == 0 {
		return []outcome{from}
	}
	var all []outcome
	for i, d := range deeds {
		next := outcome{verdicts: map[int]waits.Verdict{}}
		for id, v := range from.verdicts {
			next.verdicts[id] = v
		}
		next.world = d.in(from.world, next.verdicts)
		rest := append(slices.Clone(deeds[:i]), deeds[i+1:]...)
		all = append(all, orders(next, rest)...)
	}
	return all
}

// agree returns the outcomes that are what the requests were told.
func (p *play) agree(all []outcome) (exact []outcome) {
	for _, o := range all {
		same := true
		for id, a := range p.asked {
			done, status := a.outcome()
			want := 0
			if r, holds := o.world.Has(id); r == nil {
				want = http.StatusConflict
			} else if holds {
				want = http.StatusCreated
			}
			same = same && status == want && (status != 0 || !done)
		}
		if same {
			exact = append(exact, o)
		}
	}
	return exact
}

// confirm returns the outcomes that are what both replicas show of the queues.
// Who was not answered yet may be on its way, or on its way out.
func (p *play) confirm(all []outcome) []outcome {
	for name := range p.names() {
		for replica := range 2 {
			holders, waiters := p.look(replica, name)
			all = slices.DeleteFunc(all, func(o outcome) bool {
				h, w := o.world.Queue(name)
				return !slices.Equal(h, holders) || !slices.Equal(w, waiters)
			})
		}
	}
	return all
}

// look asks a replica who holds a lock and who waits.
func (p *play) look(replica int, name string) (holders, waiters []int) {
	type numbered struct {
		Metadata struct {
			Number int `json:",string"`
		}
	}
	var view struct{ Holders, Waiters []numbered }
	status, err := p.exchange(p.ctx, replica, http.MethodGet, "/locks/"+name+"?consistent=true", "", nil, &view)
	if p.cut.CompareAndSwap(false, status == http.StatusServiceUnavailable); status != http.StatusOK && !p.cut.Load() {
		p.t.Errorf("look at %s: %d, %v", name, status, err)
	}
	for _, h := range view.Holders {
		holders = append(holders, h.Metadata.Number)
	}
	for _, w := range view.Waiters {
		waiters = append(waiters, w.Metadata.Number)
	}
	return holders, waiters
}

// names yields the locks of the round.
func (p *play) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range lockNames() {
			if !yield(p.prefix + name) {
				return
			}
		}
	}
}

func lockNames() []string { return []string{"a", "b", "c", "s2", "t2", "s3"} }

// worldsOf returns the different worlds. The queues do not tell whether one who
// waits came before one who holds, so that there can be several.
func worldsOf(all []outcome) []waits.World {
	var worlds []waits.World
	seen := map[string]bool{}
	for _, o := range all {
		if key := o.world.Order(); !seen[key] {
			seen[key] = true
			worlds = append(worlds, o.world)
		}
	}
	return worlds
}

// account counts what is new, and takes the refused out of the play.
func (p *play) account(exact []outcome) bool {
	for id, a := range p.asked {
		_, status := a.outcome()
		switch {
		case status == http.StatusConflict:
			p.deadlocks++
			delete(p.asked, id)
			if err := a.checkCycle(p.prefix); err != nil {
				p.fail(fmt.Sprintf("%d: %v", id, err))
				return false
			}
		case status == http.StatusCreated && !a.counted:
			a.counted = true
			if slices.ContainsFunc(exact, func(o outcome) bool { return o.verdicts[id] == waits.Granted }) {
				p.atOnce++
			} else {
				p.later++
			}
		}
	}
	return true
}

// checkCycle checks that a refusal names a cycle that begins and ends with the
// one who is refused.
func (a *asked) checkCycle(prefix string) error {
	cycle := a.answer.Cycle
	if a.answer.Code != "deadlock" || len(cycle) == 0 {
		return fmt.Errorf("refused with %q and %d waits", a.answer.Code, len(cycle))
	}
	for i, step := range cycle {
		if next := cycle[(i+1)%len(cycle)]; step.InTheWay != next.Holder || step.WaitsFor == "" {
			return fmt.Errorf("%+v is no cycle", cycle)
		}
	}
	if !slices.ContainsFunc(cycle, func(s cycleStep) bool { return s.Holder == prefix+a.Holder }) {
		return fmt.Errorf("%+v is a cycle without the one who is refused", cycle)
	}
	return nil
}

// fail tells what happened last, what the requests were told, and what was
// thought to be true before.
func (p *play) fail(why string) {
	p.t.Helper()
	var text strings.Builder
	for _, w := range p.worlds {
		fmt.Fprintf(&text, "a world before the last deeds:\n%v\n", w)
	}
	for _, a := range p.asked {
		done, status := a.outcome()
		fmt.Fprintf(&text, "%d by %q: answered %t, %d", a.ID, a.Holder, done, status)
		if done {
			fmt.Fprintf(&text, ", %v, cycle %v", a.err, a.answer.Cycle)
		}
		text.WriteByte('\n')
	}
	p.t.Errorf("%s\n%s\n%s", why, strings.Join(p.journal, "\n"), text.String())
}
