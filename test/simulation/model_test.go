package simulation

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/spec"
)

// judge holds the history against the model of the protocol: each step has to be one of the model.
// Between a restore and its floor the model promises little, and nothing is judged.
type judge struct {
	w       *world
	alone   bool // no other check counts
	model   spec.Model
	state   spec.State
	floor   uint64
	sent    []*message // puts, as state.Late has their writes
	calls   map[*write]int
	live    map[lock.ID]spec.Entry
	ended   map[string]end // by id and number
	expired []expiry       // without a record yet
	uses    map[lock.ID]use
}

// use counts how often an id was free again after an end: then it is another entry's.
type use struct {
	n       int
	forgets time.Duration // when the end of this use is forgotten
}

type end struct {
	entry  spec.Entry
	before spec.Picture
}

type expiry struct {
	id string
	at time.Duration
}

func newJudge(w *world) *judge {
	return &judge{
		w: w, alone: judgeAlone(),
		calls: map[*write]int{}, live: map[lock.ID]spec.Entry{},
		ended: map[string]end{}, uses: map[lock.ID]use{},
		state: spec.State{Past: []spec.Picture{{Trusted: true}}, Restores: 1},
	}
}

// takes makes a step, and notes if the model has none, or if the step breaks a property.
func (j *judge) takes(step spec.Step, next spec.State, why spec.Rule) {
	broken := error(nil)
	if why == "" {
		broken = spec.Check(j.state, step, next)
	}
	if (why != "" || broken != nil) && !j.w.missing {
		j.w.problem("the model refuses %v: %v%v", step, why, broken)
	}
	j.state = next
}

func stepOf(name string, e spec.Entry) spec.Step { return spec.Step{Name: name, Entry: e} }

const refusedByModel = "the model refuses"

// judgeAlone reports whether only the model counts, to see what it finds without the other checks.
func judgeAlone() bool { return os.Getenv("SIMULATE_JUDGE") == "alone" }

// key names the entry of an id in its present use.
func (j *judge) key(id lock.ID) string {
	if n := j.uses[id].n; n > 0 {
		return fmt.Sprint(id, "#", n)
	}
	return string(id)
}

func (j *judge) number(n uint64) int64 { return int64(n - j.floor) }

var modes = map[lock.Mode]spec.Mode{
	lock.Exclusive: spec.Exclusive, lock.Shared: spec.Shared, lock.Semaphore: spec.Semaphore,
}

// claims returns what e wants, in the order of its request if it will choose.
func claims(e *lock.Entry) (all []spec.Claim) {
	for i := range e.Claims {
		c := e.Claims[i]
		if len(e.Order) > 0 {
			c = e.Claims[e.Order[i]]
		}
		all = append(all, spec.Claim{
			Lock: e.Tenant + "/" + c.Name, Mode: modes[c.Mode], Permits: c.Permits, Limit: c.Limit,
		})
	}
	return all
}

func (j *judge) entry(e *lock.Entry) spec.Entry {
	is := spec.Entry{ID: j.key(e.ID), Keyed: e.Resumable(), Claims: claims(e)}
	if e.Number > 0 {
		is.Number = j.number(e.Number)
	}
	if e.Choosing() {
		is.Any = e.Any
	}
	return is
}

// sends: a call of a replica sends a join.
func (j *judge) sends(m *message) {
	if _, known := j.calls[m.part]; !known {
		j.calls[m.part] = len(j.calls)
	}
	if u := j.uses[m.id]; u.forgets > 0 && u.forgets <= j.w.now() {
		j.uses[m.id] = use{n: u.n + 1}
	}
	asks := j.entry(m.part.entry)
	at := spec.Replica{View: j.state.Store(), Ready: true}
	at.View.Trusted = true // whether it may join is decided when it does
	next, why := j.model.Ask(j.state, j.calls[m.part], at, asks)
	j.takes(stepOf("its join is sent", asks), next, why)
	j.sent = append(j.sent, m)
}

// done: the store has carried out a request.
func (j *judge) done(m *message, err error) {
	switch {
	case m.op == memory.Put && err != nil:
		j.arrived(m)
	case m.op == memory.Exclude && m.part != nil:
		j.state, _ = j.model.Learn(j.state, j.calls[m.part], j.key(m.id))
	case m.op == memory.Renew && err == nil:
		e := j.live[m.id]
		next, why := j.model.Renew(j.state, e)
		j.takes(stepOf(spec.Renews, e), next, why)
	}
}

// arrived returns the write of a put, which is no longer on its way.
func (j *judge) arrived(m *message) (w spec.Write, found bool) {
	i := slices.Index(j.sent, m)
	if i < 0 {
		return w, false
	}
	w = j.state.Late[i]
	j.sent = slices.Delete(j.sent, i, i+1)
	j.state.Late = slices.Delete(slices.Clone(j.state.Late), i, i+1)
	return w, true
}

// happened takes what the store did at a number.
func (j *judge) happened(r memory.Run) {
	j.expired = slices.DeleteFunc(j.expired, func(x expiry) bool {
		due := x.at+j.w.ExpiryRecord <= j.w.now()
		if due {
			j.state, _ = j.model.Record(j.state, x.id, j.state.Store().Number)
		}
		return due
	})
	for _, c := range r.Changes {
		switch {
		case c.Joined != nil:
			j.joins(c.Joined)
		case c.Narrowed != nil:
			j.narrows(c.Narrowed, j.number(r.Number))
		default:
			j.leaves(c.Left, c.Reason, j.number(r.Number))
		}
	}
	j.state.Past = j.state.Past[max(0, len(j.state.Past)-2):] // no step looks further back
}

func (j *judge) joins(e *lock.Entry) {
	w := spec.Write{Entry: j.entry(e), Floor: j.state.Store().Floor}
	if by := j.w.truth.writing[e.ID]; by != nil && by.request != nil {
		if sent, found := j.arrived(by.request); found {
			w = sent
		}
	}
	next, why := j.model.Join(j.state, w, j.number(e.Number))
	w.Entry.Number = j.number(e.Number)
	j.takes(spec.Step{Name: spec.Joins, Entry: w.Entry, Marked: w.Marked}, next, why)
	j.live[e.ID] = w.Entry
}

func (j *judge) narrows(e *lock.Entry, number int64) {
	was := j.live[e.ID]
	next, why := j.model.Take(j.state, j.state.Store(), was, claims(e), number)
	j.takes(stepOf("it takes its locks", was), next, why)
	was.Claims, was.Any = claims(e), 0
	j.live[e.ID] = was
}

func (j *judge) leaves(id lock.ID, reason lock.Reason, number int64) {
	e, p := j.live[id], j.state.Store()
	j.ended[fmt.Sprint(id, e.Number)] = end{e, p}
	next, why := j.model.Release(j.state, e, number)
	switch reason {
	case lock.Expired:
		next, why = j.model.Expire(j.state, e, number)
		j.expired = append(j.expired, expiry{e.ID, j.w.now()})
	case lock.Withdrawn, lock.WaitTimeout, lock.Deadlocked, lock.Mismatched, lock.Superseded:
		next, why = j.removes(id, reason, number)
	}
	j.takes(stepOf("it ends as "+string(reason), e), next, why)
	delete(j.live, id)
	u := use{j.uses[id].n, j.w.now() + j.w.ExpiryRecord + remembered}
	if reason == lock.Withdrawn {
		u = use{n: u.n + 1}
	}
	j.uses[id] = u
}

// remembered is how long the store keeps an end.
const remembered = 11 * time.Minute

// removes: a view decided, so there were witnesses; or the client has gone before it learned of a
// grant, and learns of none any more.
func (j *judge) removes(id lock.ID, reason lock.Reason, number int64) (spec.State, spec.Rule) {
	e, p := j.live[id], j.state.Store()
	next, why := j.model.Refuse(j.state, p, e, p.Queue)
	if why == "" {
		w := next.Late[len(next.Late)-1]
		next.Late = j.state.Late
		return j.model.Remove(next, w, number)
	}
	told := slices.ContainsFunc(j.state.Told, func(g spec.Grant) bool {
		return g.ID == e.ID && g.Number == e.Number
	})
	if reason != lock.Withdrawn || told {
		return j.state, why
	}
	delete(j.ended, fmt.Sprint(id, e.Number))
	return j.model.Release(j.state, e, number)
}

// tells: a client learns that its entry holds.
func (j *judge) tells(e *lock.Entry) {
	number := j.number(e.Number)
	of, view := j.live[e.ID], j.state.Store()
	if was, ended := j.ended[fmt.Sprint(e.ID, number)]; ended && of.Number != number {
		of, view = was.entry, was.before
	}
	of.Number = number
	next, why := j.model.Tell(j.state, view, of)
	j.takes(stepOf("its client learns of the grant", of), next, why)
}

// trusts: an operator has given a floor, and the judgement begins again with what is in the store.
func (j *judge) trusts(floor uint64) {
	highest := j.state.Highest
	for _, g := range j.state.Told {
		highest = max(highest, g.Fence)
	}
	p := spec.Picture{Copy: j.state.Store().Copy + 1, Floor: int64(j.floor)}
	j.floor = floor
	p.Number = j.number(j.w.server.Number())
	j.live, j.ended = map[lock.ID]spec.Entry{}, map[string]end{}
	for _, e := range j.w.server.Entries() {
		is := j.entry(e)
		p.Queue, j.live[e.ID] = append(p.Queue, is), is
	}
	for _, end := range j.w.server.Ends() {
		if end.Reason != lock.Withdrawn {
			p.Used = append(p.Used, j.key(end.ID))
		}
	}
	j.state = spec.State{Past: []spec.Picture{p}, Late: j.state.Late, Highest: highest}
	for i := range j.state.Late {
		j.state.Late[i].Floor = int64(floor) // this store adds its floor itself
	}
	next, why := j.model.GiveFloor(j.state, int64(floor), p.Number)
	j.takes(stepOf("a floor is given", spec.Entry{}), next, why)
}
