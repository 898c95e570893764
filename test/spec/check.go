package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// A Step is an action of the model with what it was applied to.
type Step struct {
	Name    string
	Replica int
	Entry   Entry
	Marked  bool
	Fair    bool // it happens in the end, if it stays possible
}

// The names of steps that properties and stories tell apart.
const (
	Joins    = "its join lands"
	Removes  = "its removal by a view lands"
	Renews   = "its renewal is answered"
	Restores = "the store is replaced by an older copy"
)

func (s Step) String() string {
	text := s.Name
	if s.Entry.ID != "" {
		text = "entry " + s.Entry.ID + ": " + text
	}
	if s.Entry.Number > 0 {
		text += fmt.Sprint(", number ", s.Entry.Number)
	}
	if s.Replica > 0 {
		text += fmt.Sprint(" (replica ", s.Replica, ")")
	}
	return text
}

// A Case is a small world that is checked whole.
type Case struct {
	Name                              string
	Entries                           []Entry
	Replicas, Late, Restores, Crashes int
	Mirror                            map[string]string // names that change if the replicas' do
}

// Start is the state with an empty store and replicas that have listed it.
func (c Case) Start() State {
	empty := Picture{Trusted: true}
	s := State{Past: []Picture{empty}, Restores: c.Restores, Crashes: c.Crashes}
	for range c.Replicas {
		s.Replicas = append(s.Replicas, Replica{View: empty, Ready: true})
	}
	return s
}

// next yields each step that the model allows in s, and the state after it.
func (m Model) next(c Case, s State, yield func(Step, State)) {
	do := func(step Step, t State, why Rule) {
		if why == "" {
			yield(step, t)
		}
	}
	number := s.Store().Number + 1
	m.land(s, number, do)
	if m.Broken == OwnNumber && number > 1 {
		m.land(s, number-1, do)
	}
	for _, e := range s.Store().Queue {
		unkept := !slices.ContainsFunc(s.Replicas, func(r Replica) bool {
			return slices.Contains(r.Waits, e.ID)
		})
		t, why := m.Expire(s, e, number)
		do(Step{Name: "its lease ends", Entry: e, Fair: unkept || s.told(e)}, t, why)
	}
	for _, e := range c.Entries {
		if t, why := m.Record(s, e.ID, number); e.Keyed && s.seen(e) {
			do(Step{Name: "its end is recorded", Entry: e}, t, why)
		}
	}
	for _, g := range s.Told {
		t, why := m.Release(s, g.Entry, number)
		do(Step{Name: "its client releases it", Entry: g.Entry, Fair: true}, t, why)
		t, why = m.Renew(s, g.Entry)
		do(Step{Name: Renews, Entry: g.Entry}, t, why)
	}
	for r := range s.Replicas {
		m.replica(c, s, r, do)
	}
	for i := range s.Past {
		t, why := m.Restore(s, i)
		do(Step{Name: Restores}, t, why)
	}
	t, why := m.GiveFloor(s, max(s.Highest, s.Store().Floor)+1, number)
	do(Step{Name: "the operator gives a floor", Fair: true}, t, why)
	if m.Broken == FloorRises {
		t, why = m.GiveFloor(s, 0, number)
		do(Step{Name: "the operator gives a floor that is too low", Fair: true}, t, why)
	}
}

// land yields what each write on its way comes to. One that the store refuses is gone.
func (m Model) land(s State, number int64, do func(Step, State, Rule)) {
	for i, w := range s.Late {
		on := s
		on.Late = slices.Delete(slices.Clone(s.Late), i, i+1)
		step := Step{Entry: w.Entry, Marked: w.Marked, Fair: true}
		if w.Removal {
			step.Name = Removes
			if t, why := m.Remove(on, w, number); why == "" {
				do(step, t, "")
				continue
			}
			step.Name = "its removal by a view is refused"
			do(step, on, "")
			continue
		}
		t, why := m.Join(on, w, number)
		step.Name, step.Entry.Number = Joins, number
		if why != "" {
			step.Name, step.Entry.Number, t = "its join is refused", 0, on
		}
		if w.Writer == Gone || w.Marked || t.Store().find(w.Entry.ID, 0) < 0 {
			do(step, t, "")
			continue
		}
		t = t.at(w.Writer, func(at *Replica) {
			if !slices.Contains(at.Waits, w.Entry.ID) {
				at.Waits = append(slices.Clip(at.Waits), w.Entry.ID)
			}
		})
		do(step, t, "")
		m.atOnce(s, t, w, step, do)
	}
}

// atOnce: a replica whose view was current grants from the answer of its write.
func (m Model) atOnce(s, t State, w Write, step Step, do func(Step, State, Rule)) {
	view := s.Replicas[w.Writer].View
	if step.Name != Joins || view.Number != s.Store().Number || view.Copy != s.Store().Copy {
		return
	}
	now := t.Store()
	now.Floor = w.Floor
	e := now.Queue[now.find(w.Entry.ID, 0)]
	t, why := m.Tell(t, now, e)
	step.Fair, step.Replica = false, w.Writer+1
	do(step, t, why)
}

func (m Model) replica(c Case, s State, r int, do func(Step, State, Rule)) {
	number, at := s.Store().Number+1, s.Replicas[r]
	step := func(name string, e Entry, fair bool) Step {
		return Step{Name: name, Replica: r + 1, Entry: e, Fair: fair}
	}
	for i, e := range c.Entries {
		may := len(s.Late) < c.Late && (e.Keyed || i%c.Replicas == r && s.fresh(e))
		if t, why := m.Ask(s, r, at, e); may {
			do(step("its join is sent", e, false), t, why)
		}
		t, why := m.Learn(s, r, e.ID)
		do(step("its join is given up, marked, and its outcome read", e, false), t, why)
		if t, why := m.Read(s, r, e.ID); m.Broken == FeedComplete {
			do(step("the feed loses it", e, false), t, why)
		}
	}
	for _, e := range at.View.Queue {
		waits := slices.Contains(at.Waits, e.ID)
		t, why := m.Tell(s, at.View, e)
		first := at.View.Copy == s.Store().Copy && s.Store().has(e) && !s.told(e)
		do(step("its client learns of the grant", e, waits && first), t, why)
		t, why = m.Take(s, at.View, e, at.View.choice(e), number)
		do(step("it takes its locks of the pool", e, waits && s.Store().waits(e)), t, why)
		if m.Broken == Blocked {
			t, why = m.Refuse(s, at.View, e, nil)
			do(step("the view sends its removal, on no condition", e, false), t, why)
		}
		for _, w := range witnesses(at.View, e) {
			if t, why := m.Refuse(s, at.View, e, w); len(s.Late) < c.Late && !s.removing(e) {
				do(step("the view shows it waiting, and sends its removal", e, false), t, why)
			}
		}
	}
	t, why := m.Read(s, r, "")
	do(step("the feed delivers the next write", Entry{}, true), t, why)
	t, why = m.List(s, r)
	do(step("the replica lists the store", Entry{}, true), t, why)
	t, why = m.Crash(s, r)
	do(step("the replica restarts", Entry{}, false), t, why)
}

// fresh reports whether e may still join without being another entry: a client without a key sends
// its request once.
func (s State) fresh(e Entry) bool {
	return s.Store().find(e.ID, 0) < 0 && !slices.Contains(s.Store().Used, e.ID) &&
		!slices.ContainsFunc(s.Late, func(w Write) bool { return w.Entry.ID == e.ID && w.Writer == Gone })
}

// seen reports whether a replica has seen e, so that it can notice the end.
func (s State) seen(e Entry) bool {
	return slices.ContainsFunc(s.Replicas, func(r Replica) bool { return r.View.find(e.ID, 0) >= 0 })
}

// choice returns the first claims of the request at whose front e is, as many as it wants.
func (p Picture) choice(e Entry) (k []Claim) {
	for _, c := range e.Claims {
		if len(k) < e.Any && p.AtFront(e, c.Lock) {
			k = append(k, c)
		}
	}
	return k
}

// waits reports whether e has not yet taken its locks of a pool.
func (p Picture) waits(e Entry) bool {
	i := p.find(e.ID, e.Number)
	return i >= 0 && p.Queue[i].Any > 0
}

func (s State) removing(e Entry) bool {
	return slices.ContainsFunc(s.Late, func(w Write) bool { return w.Removal && w.Entry.ID == e.ID })
}

// witnesses returns each entry before e that alone blocks it, or else all before it; or e itself.
func witnesses(view Picture, e Entry) (all [][]Entry) {
	at := view.find(e.ID, e.Number)
	if view.Queue[at].Any > 0 {
		return [][]Entry{view.Queue[at : at+1]}
	}
	before := view.Queue[:at]
	for i := range before {
		if one := before[i : i+1]; blocked(e, one) {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return append(all, before)
	}
	return all
}

// A Result is what a check has found: a story that breaks a property, or nothing.
type Result struct {
	States, Steps int
	Broken        error
	Story         []Step
}

// Run takes every order of the steps of a case, shortest first, of at most limit states.
func (m Model) Run(c Case, limit int) Result {
	type at struct {
		state State
		index int
	}
	seed, seen := maphash.MakeSeed(), map[[2]uint64]bool{}
	past, queue, result := []from{{}}, []at{{state: c.Start()}}, Result{}
	for len(queue) > 0 && len(seen) < limit && result.Broken == nil {
		now := queue[0]
		queue = queue[1:]
		nth, fair := 0, false
		fail := func(broken error, last ...Step) {
			if result.Broken == nil && broken != nil {
				result.Broken, result.Story = broken, append(m.story(c, past, now.index), last...)
			}
		}
		m.next(c, now.state, func(step Step, t State) {
			fail(Check(now.state, step, t), step)
			if step.Fair && Rank(t) >= Rank(now.state) {
				fail(Property("a fair step makes progress"), step)
			}
			if key := t.key(c, seed); !seen[key] {
				seen[key] = true
				queue = append(queue, at{t, len(past)})
				past = append(past, from{now.index, nth})
			}
			nth, fair = nth+1, fair || step.Fair
		})
		result.Steps += nth
		if !fair {
			fail(Stuck(now.state))
		}
	}
	result.States = len(seen)
	return result
}

// from is how a state was first reached: by the nth step from another one.
type from struct{ before, nth int }

// story returns the steps to a state.
func (m Model) story(c Case, past []from, to int) (steps []Step) {
	var path []int
	for ; to > 0; to = past[to].before {
		path = append(path, past[to].nth)
	}
	s := c.Start()
	for _, nth := range slices.Backward(path) {
		i, now := 0, s
		m.next(c, now, func(step Step, t State) {
			if i == nth {
				steps, s = append(steps, step), t
			}
			i++
		})
	}
	return steps
}

// Rank is what fair steps still have to do, each counted above all that it may bring about.
func Rank(t State) int {
	rank := 1000 * len(t.Late)
	if !t.Store().Trusted {
		rank += 50
	}
	for _, e := range t.Store().Queue {
		rank += 20 + 20*e.Any
		if !t.told(e) {
			rank += 20
		}
	}
	for _, r := range t.Replicas {
		if !r.Ready || r.View.Copy != t.Store().Copy {
			rank += 200
		}
		rank += int(t.Store().Number - r.View.Number)
	}
	return rank
}

// told reports whether a client has learned, in this copy of the store, that its entry is granted.
func (s State) told(e Entry) bool {
	return slices.ContainsFunc(s.Told, func(g Grant) bool {
		return g.ID == e.ID && g.Number == e.Number && g.Copy == s.Store().Copy
	})
}

// key is the same for states that differ in what no step can see, or by the names of replicas.
func (s State) key(c Case, seed maphash.Seed) [2]uint64 {
	ranked := c.Restores == 0
	b := s.bytes(ranked, []int{0, 1}[:c.Replicas], nil)
	if c.Mirror != nil {
		b = slices.MinFunc([][]byte{b, s.bytes(ranked, []int{1, 0}, c.Mirror)}, bytes.Compare)
	}
	return [2]uint64{maphash.Bytes(seed, b), maphash.Bytes(seed, append(b, 1))}
}

// bytes writes numbers by their rank, unless a restore could repeat them, and leaves out what is
// past then.
func (s State) bytes(ranked bool, order []int, mirror map[string]string) []byte {
	store, past := s.Store(), s.Past
	current := func(r Replica) bool { return r.Ready && r.View.Copy == store.Copy }
	for ranked && len(past) > 1 && !slices.ContainsFunc(s.Replicas, func(r Replica) bool {
		return current(r) && r.View.Number == past[0].Number
	}) {
		past = past[1:]
	}
	numbers := []int64{0}
	for _, p := range past {
		numbers = append(numbers, p.Number)
		for _, e := range p.Queue {
			numbers = append(numbers, e.Number)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	b := make([]byte, 0, 256)
	add := func(all ...any) {
		for _, v := range all {
			switch v := v.(type) {
			case string:
				b = append(b, cmp.Or(mirror[v], v)...)
			case int:
				b = append(b, byte(v))
			case bool:
				b = append(b, map[bool]byte{true: 1}[v])
			case int64: // a number
				i, found := slices.BinarySearch(numbers, v)
				if b = append(b, byte(v)); ranked && found {
					b[len(b)-1] = byte(i)
				} else if ranked {
					b[len(b)-1] = 255
				}
			}
		}
	}
	entry := func(e Entry) {
		for add(e.ID, e.Number, e.Any); len(e.Claims) > 0; e.Claims = e.Claims[1:] {
			add(e.Claims[0].Lock)
		}
	}
	sorted := func(n int, each func(int)) {
		parts := make([]string, n)
		for i := range n {
			from := len(b)
			each(i)
			parts[i], b = string(b[from:]), b[:from]
		}
		slices.Sort(parts)
		b = append(append(b, strings.Join(parts, ",")...), '/')
	}
	ids := func(ids []string) { sorted(len(ids), func(i int) { add(ids[i]) }) }
	picture := func(p Picture) {
		add(p.Number, int(p.Floor), p.Copy, p.Trusted)
		for _, e := range p.Queue {
			entry(e)
		}
		if b = append(b, '/'); !ranked {
			ids(p.Used)
		}
	}
	for _, p := range past {
		picture(p)
	}
	ids(store.Used)
	for _, i := range order {
		if r := s.Replicas[i]; current(r) {
			add(r.View.Number)
		} else if r.Ready {
			picture(r.View)
		}
		ids(s.Replicas[i].Waits)
	}
	sorted(len(s.Late), func(i int) {
		w := s.Late[i]
		add(slices.Index(order, w.Writer), int(w.Floor), w.Removal, w.Marked)
		for _, e := range append([]Entry{w.Entry}, w.Witnesses...) {
			entry(e)
		}
	})
	sorted(len(s.Told), func(i int) {
		if g := s.Told[i]; !ranked || store.has(g.Entry) {
			entry(g.Entry)
			add(g.Copy, int(g.Fence-g.Number))
		}
	})
	add(int(s.Highest), s.Restores, s.Crashes)
	return b
}
