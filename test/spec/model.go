// Package spec is the protocol of Fencepost as a model: what the store holds, what replicas have
// read, and each step that changes it. check.go takes every order of the steps of small cases;
// trace.go judges what the code did with the same functions. docs/internals/spec explains it.
package spec

import (
	"cmp"
	"slices"
)

// A Claim is what an entry wants of one lock.
type Claim struct {
	Lock           string
	Mode           Mode
	Permits, Limit int // of a semaphore
}

// Mode says which entries hold together: none, readers, or those of a semaphore up to its limit.
type Mode int

// The modes.
const (
	Exclusive Mode = iota
	Shared
	Semaphore
)

// An Entry is one acquisition. The number of the write by which it joined is its order and fence.
type Entry struct {
	ID     string
	Number int64
	Claims []Claim // in the order of the request
	Any    int     // it waits for so many of its claims; 0: for all, or it has taken them
	Keyed  bool    // its ID follows from a key of its client: two replicas may write it
}

// A Picture is all that the store holds at one number. A replica's view is a picture too.
type Picture struct {
	Number, Floor int64
	Copy          int     // a restore begins another copy of the store
	Trusted       bool    // false from a restore until its floor is given
	Queue         []Entry // of all locks, by number
	Used          []string
}

// A Write is on its way to the store. It may land at any time, also after its replica gave it up.
type Write struct {
	Entry     Entry
	Removal   bool    // of Entry, else its join
	Witnesses []Entry // a removal happens while these exist
	Writer    int     // the replica that still listens for the answer, or Gone
	Floor     int64   // that the writer of a join knew
	Marked    bool    // its writer has marked since, to shut it out
}

// Gone is the writer of a write whose replica has restarted.
const Gone = -1

// A Replica has a view, and keeps the leases of the entries whose clients wait at it.
type Replica struct {
	View  Picture
	Ready bool // it has listed the store
	Waits []string
}

// A Grant is what a client has learned.
type Grant struct {
	Entry
	Copy  int
	Fence int64
}

// State is the store with its past, what is on the way, and what replicas and clients know.
type State struct {
	Past              []Picture // of this copy; the last is the present
	Late              []Write
	Replicas          []Replica
	Told              []Grant
	Restores, Crashes int   // faults that may still happen
	Highest           int64 // fence that lost copies may have issued
}

// A Rule is a guard of the protocol. A mutation of the model is a rule that it does not keep.
type Rule string

// The rules. Each refuses a step, and its text is the reason.
const (
	OwnNumber      Rule = "no two entries of a lock have one number"
	MarkCompared   Rule = "a join that its writer has marked since does not happen"
	MarkBeforeNext Rule = "a replica marks before it sends a join again"
	JoinsAbsent    Rule = "a join happens only while no entry has its id"
	KeyUnused      Rule = "a key whose end is recorded is used up"
	FloorCompared  Rule = "a join compares the floor that its replica knew"
	HoldsInView    Rule = "a grant follows from a view in which the entry holds"
	Trust          Rule = "after a restore nothing is granted until a floor is given"
	FloorRises     Rule = "a floor is above every fence of the copies that were lost"
	Blocked        Rule = "a removal that a view decided happens while its witnesses exist"
	SameWitness    Rule = "a witness is the entry with the number that the view had"
	OwnEntry       Rule = "a release ends its own entry, not the holder of the lock"
	RenewalReads   Rule = "a renewal reads the entry after its lease was kept alive"
	FeedComplete   Rule = "a feed leaves no write out"
	LeaseBound     Rule = "an entry ends when nothing keeps its lease"
	TakenOnce      Rule = "an entry of any k locks takes them once"
	possible       Rule = "the step is possible"
)

// A Model keeps all rules but the broken one, which is for tests.
type Model struct{ Broken Rule }

// need returns the rule if it refuses, else "".
func (m Model) need(rule Rule, kept bool) Rule { return require(rule, kept || m.Broken == rule) }

func require(rule Rule, kept bool) Rule {
	if kept {
		return ""
	}
	return rule
}

// Store is the present picture.
func (s State) Store() Picture { return s.Past[len(s.Past)-1] }

// before is the picture that the conditions of a transaction with this number see.
func (s State) before(number int64) Picture {
	for len(s.Past) > 1 && s.Store().Number >= number {
		s.Past = s.Past[:len(s.Past)-1]
	}
	return s.Store()
}

// find returns where the entry with an id is. Number 0 is any.
func (p Picture) find(id string, number int64) int {
	return slices.IndexFunc(p.Queue, func(e Entry) bool {
		return e.ID == id && (number == 0 || e.Number == number)
	})
}

// last returns the newest number in the queues of e's locks.
func (p Picture) last(e Entry) (number int64) {
	for _, o := range p.Queue {
		for _, c := range e.Claims {
			if _, in := o.claim(c.Lock); in && o.ID != e.ID {
				number = o.Number
			}
		}
	}
	return number
}

func (p Picture) has(e Entry) bool { return p.find(e.ID, e.Number) >= 0 }

func (e Entry) claim(name string) (Claim, bool) {
	for _, c := range e.Claims {
		if c.Lock == name {
			return c, true
		}
	}
	return Claim{}, false
}

// tolerates reports whether c may hold together with the claims of its lock before it.
func (c Claim) tolerates(before []Claim) bool {
	permits := c.Permits
	for _, b := range before {
		permits += b.Permits
		if b.Mode != c.Mode || c.Mode == Exclusive {
			return false
		}
	}
	return c.Mode != Semaphore || permits <= c.Limit
}

// AtFront reports whether e is in the longest run, from the head of the lock's queue, of claims
// that tolerate all before them.
func (p Picture) AtFront(e Entry, name string) bool {
	var run []Claim
	for _, o := range p.Queue {
		c, in := o.claim(name)
		if in && !c.tolerates(run) {
			return false
		}
		if in && o.ID == e.ID {
			return true
		}
		if in {
			run = append(run, c)
		}
	}
	return false
}

// Holds is the core of the protocol: the holders follow from the queue, and nothing writes them.
func (p Picture) Holds(e Entry) bool {
	i := p.find(e.ID, e.Number)
	return i >= 0 && p.Queue[i].Any == 0 && !slices.ContainsFunc(p.Queue[i].Claims,
		func(c Claim) bool { return !p.AtFront(e, c.Lock) })
}

// commit makes the store's next picture, unless a rule refuses. Writes of one transaction have one
// number.
func (s State) commit(number int64, why Rule, change func(*Picture)) (State, Rule) {
	if why != "" {
		return s, why
	}
	p := s.Store()
	if number > p.Number {
		s.Past = append(slices.Clip(s.Past), p)
	} else {
		s.Past = slices.Clone(s.Past)
	}
	p.Number = number
	change(&p)
	s.Past[len(s.Past)-1] = p
	return s, ""
}

func (p *Picture) remove(e Entry, recorded bool) {
	i := p.find(e.ID, e.Number)
	p.Queue = slices.Delete(slices.Clone(p.Queue), i, i+1)
	if recorded {
		p.Used = append(slices.Clip(p.Used), e.ID)
	}
}

// blocked reports whether e cannot have been granted while the witnesses exist: entries before it
// in a queue, or itself while it waits for any of its locks, because taking them is a write.
func blocked(e Entry, witnesses []Entry) bool {
	if e.Any > 0 {
		return slices.ContainsFunc(witnesses, func(w Entry) bool { return w.ID == e.ID && w.Any > 0 })
	}
	var p Picture
	for _, w := range witnesses {
		if w.ID != e.ID && w.Number <= e.Number {
			p.Queue = append(p.Queue, w)
		}
	}
	p.Queue = append(p.Queue, e)
	return !p.Holds(e)
}

func (s State) at(r int, change func(*Replica)) State {
	s.Replicas = slices.Clone(s.Replicas)
	change(&s.Replicas[r])
	return s
}

// The actions. Each has its guard and its effect, and returns the rule that refuses it, or "".

// Ask has replica r, which is in this state, send the join of an entry for its client.
func (m Model) Ask(s State, r int, at Replica, e Entry) (State, Rule) {
	sent := slices.ContainsFunc(s.Late, func(w Write) bool {
		return !w.Removal && w.Writer == r && w.Entry.ID == e.ID && !w.Marked
	})
	s.Late = append(slices.Clip(s.Late), Write{Entry: e, Writer: r, Floor: at.View.Floor})
	return s, cmp.Or(m.need(possible, at.Ready && !slices.Contains(at.Waits, e.ID)),
		m.need(Trust, at.View.Trusted), m.need(MarkBeforeNext, !sent))
}

// Join has the join of an entry land, and the store gives it its number.
func (m Model) Join(s State, w Write, number int64) (State, Rule) {
	p, e := s.before(number), w.Entry
	e.Number = number
	return s.commit(number, cmp.Or(
		m.need(possible, !w.Removal && number >= s.Store().Number),
		m.need(OwnNumber, number > s.Store().last(e)),
		m.need(MarkCompared, !w.Marked),
		m.need(JoinsAbsent, p.find(e.ID, 0) < 0),
		m.need(KeyUnused, !e.Keyed || !slices.Contains(p.Used, e.ID)),
		m.need(FloorCompared, w.Floor == p.Floor),
	), func(p *Picture) {
		p.Queue = slices.DeleteFunc(slices.Clone(p.Queue), func(o Entry) bool { return o.ID == e.ID })
		p.Queue = append(p.Queue, e)
	})
}

// Learn has a replica without an answer shut out its joins of an entry, and read the outcome.
func (m Model) Learn(s State, r int, id string) (State, Rule) {
	late, marked := slices.Clone(s.Late), false
	for i, w := range late {
		if w.Writer == r && w.Entry.ID == id && !w.Removal && !w.Marked {
			late[i].Marked, marked = true, true
		}
	}
	s.Late = late
	return s, m.need(possible, marked)
}

// Tell has a client learn of its grant, from a view.
func (m Model) Tell(s State, view Picture, e Entry) (State, Rule) {
	g := Grant{Entry: e, Copy: view.Copy, Fence: e.Number + view.Floor}
	again := slices.ContainsFunc(s.Told, func(o Grant) bool {
		return o.ID == g.ID && o.Number == g.Number && o.Fence == g.Fence && o.Copy == g.Copy
	})
	if why := cmp.Or(m.need(possible, view.has(e)), m.need(HoldsInView, view.Holds(e)),
		m.need(Trust, view.Trusted)); why != "" || again {
		return s, why
	}
	s.Told = append(slices.Clip(s.Told), g)
	return s, ""
}

// Take has an entry of any k locks, at the front of k in a view, leave the queues of the others.
// It is the one grant that is a write. Which k of more is a matter of taste.
func (m Model) Take(s State, view Picture, e Entry, k []Claim, number int64) (State, Rule) {
	seen, now := view.find(e.ID, e.Number), s.before(number).find(e.ID, e.Number)
	if seen < 0 || now < 0 || len(k) == 0 || len(k) != view.Queue[seen].Any {
		return s, possible
	}
	front := !slices.ContainsFunc(k, func(c Claim) bool { return !view.AtFront(e, c.Lock) })
	e.Claims, e.Any = k, 0
	return s.commit(number, cmp.Or(
		m.need(possible, front), m.need(TakenOnce, s.before(number).Queue[now].Any > 0),
	), func(p *Picture) {
		p.Queue = slices.Clone(p.Queue)
		p.Queue[p.find(e.ID, e.Number)] = e
	})
}

// Refuse has a replica whose view shows an entry waiting send its removal (a try, a wait that is
// over, a deadlock), on the condition of witnesses that keep the entry from holding.
func (m Model) Refuse(s State, view Picture, e Entry, witnesses []Entry) (State, Rule) {
	w := Write{Entry: e, Removal: true, Witnesses: witnesses, Writer: Gone}
	s.Late = append(slices.Clip(s.Late), w)
	return s, cmp.Or(m.need(possible, view.has(e)), m.need(Blocked, blocked(e, witnesses)))
}

// Remove has such a removal land.
func (m Model) Remove(s State, w Write, number int64) (State, Rule) {
	p, same := s.before(number), true
	var still []Entry
	for _, o := range w.Witnesses {
		if i := p.find(o.ID, 0); i >= 0 {
			still, same = append(still, p.Queue[i]), same && p.Queue[i].Number == o.Number
			still[len(still)-1].Number = o.Number
		}
	}
	return s.commit(number, cmp.Or(
		m.need(possible, w.Removal && p.has(w.Entry)),
		m.need(Blocked, blocked(w.Entry, still)), m.need(SameWitness, same),
	), func(p *Picture) { p.remove(w.Entry, true) })
}

// Release has a client or an operator end an entry, whatever it is.
func (m Model) Release(s State, e Entry, number int64) (State, Rule) {
	if m.Broken == OwnEntry && !s.Store().has(e) && len(s.Store().Queue) > 0 {
		e = s.Store().Queue[0]
	}
	return s.commit(number, require(OwnEntry, s.before(number).has(e)),
		func(p *Picture) { p.remove(e, true) })
}

// Expire has the store end a lease. An ID without a key is never used again.
func (m Model) Expire(s State, e Entry, number int64) (State, Rule) {
	return s.commit(number, require(LeaseBound, s.Store().has(e) && m.Broken != LeaseBound),
		func(p *Picture) { p.remove(e, !e.Keyed) })
}

// Record has a replica record the end of a key's entry that expired.
func (m Model) Record(s State, id string, number int64) (State, Rule) {
	known := s.Store().find(id, 0) >= 0 || slices.Contains(s.Store().Used, id)
	return s.commit(number, require(possible, !known),
		func(p *Picture) { p.Used = append(slices.Clip(p.Used), id) })
}

// Renew has a client learn that its entry lives.
func (m Model) Renew(s State, e Entry) (State, Rule) {
	return s, m.need(RenewalReads, s.Store().has(e))
}

// Read has a replica's feed deliver the next write. Without the rule it may lose an entry.
func (m Model) Read(s State, r int, loses string) (State, Rule) {
	at := s.Replicas[r].View
	next := slices.IndexFunc(s.Past, func(p Picture) bool { return p.Number > at.Number })
	if !s.Replicas[r].Ready || next < 0 || at.Copy != s.Store().Copy {
		return s, possible
	}
	p := s.Past[next]
	if i := p.find(loses, 0); i >= 0 {
		p.Queue = slices.Delete(slices.Clone(p.Queue), i, i+1)
	}
	return s.at(r, func(at *Replica) { at.View = p }), m.need(FeedComplete, loses == "")
}

// List has a replica read the whole store: at its start, or because an answer shows another copy.
func (m Model) List(s State, r int) (State, Rule) {
	current := s.Replicas[r].Ready && s.Replicas[r].View.Copy == s.Store().Copy
	return s.at(r, func(at *Replica) { at.View, at.Ready = s.Store(), true }),
		require(possible, !current)
}

// Crash has a replica restart. Its view and its waits are lost; its writes are still on their way.
func (m Model) Crash(s State, r int) (State, Rule) {
	if s.Crashes == 0 {
		return s, possible
	}
	s = s.at(r, func(at *Replica) { *at = Replica{} })
	s.Crashes, s.Late = s.Crashes-1, slices.Clone(s.Late)
	for i := range s.Late {
		if s.Late[i].Writer == r {
			s.Late[i].Writer = Gone
		}
	}
	return s, ""
}

// Restore has an operator replace the store by a copy of one of its past pictures.
func (m Model) Restore(s State, to int) (State, Rule) {
	now, p := s.Store(), s.Past[to]
	if s.Restores == 0 {
		return s, possible
	}
	p.Copy, p.Trusted = now.Copy+1, false
	s.Highest = max(s.Highest, now.Number+now.Floor)
	s.Past, s.Restores = []Picture{p}, s.Restores-1
	return s, ""
}

// GiveFloor has an operator give the floor that every fence includes, and replicas trust the copy.
func (m Model) GiveFloor(s State, floor, number int64) (State, Rule) {
	return s.commit(number, cmp.Or(
		m.need(possible, !s.Store().Trusted), m.need(FloorRises, floor > s.Highest),
	), func(p *Picture) { p.Floor, p.Trusted = floor, true })
}
