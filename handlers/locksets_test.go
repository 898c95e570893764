package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
)

type set struct {
	ID            string            `json:"id"`
	Locks         []setLock         `json:"locks"`
	Any           int               `json:"any"`
	State         string            `json:"state"`
	Holder        string            `json:"holder"`
	Token         string            `json:"token"`
	Position      *int              `json:"position"`
	WaitUntil     instant           `json:"wait_until"`
	WaitedSeconds *float64          `json:"waited_seconds"`
	TTLSeconds    *float64          `json:"ttl_seconds"`
	ExpiresAt     instant           `json:"expires_at"`
	EnqueuedAt    instant           `json:"enqueued_at"`
	Metadata      map[string]string `json:"metadata"`
	Asked         *asked            `json:"release_requested"`
}

type setLock struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Limit   int    `json:"limit"`
	Permits int    `json:"permits"`
	Fence   uint64 `json:"fence"`

	Position int `json:"position"`
}

// set checks an answer with a set.
func (a *answer) set(status int, state string) set {
	a.t.Helper()
	var s set
	a.want(status, &s)
	held := state == "held"
	if s.ID == "" || s.Token == "" || s.State != state || (s.WaitedSeconds != nil) != held ||
		(s.Position == nil) != held {
		a.t.Fatalf("%v: want a set that is %s", a, state)
	}
	for i, l := range s.Locks {
		if (l.Fence > 0) != held || i > 0 && l.Name <= s.Locks[i-1].Name {
			a.t.Errorf("%v: want fences only when held, in the order of the names", a)
		}
	}
	return s
}

func (c *client) acquireSet(text string, o ...option) set {
	c.t.Helper()
	a := c.post("/locksets", append([]option{body(text)}, o...)...)
	s := a.set(http.StatusCreated, "held")
	if want := "/locksets/" + s.ID; a.header.Get("Location") != want {
		c.t.Errorf("%v: Location = %q, want %q", a, a.header.Get("Location"), want)
	}
	return s
}

func locksOf(names ...string) string {
	var locks []map[string]string
	for _, n := range names {
		locks = append(locks, map[string]string{"name": n})
	}
	return string(must(json.Marshal(map[string]any{"locks": locks})))
}

func TestLockSetIsTakenAsOne(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	a := c.post("/locksets", body(
		`{"locks":[{"name":"c","mode":"semaphore","limit":9,"permits":4},{"name":"a"},{"name":"b",`+
			`"mode":"shared"}],"ttl_seconds":60,"holder":"w","metadata":{"k":"v"}}`,
	))
	got := a.set(http.StatusCreated, "held")
	want := set{
		State: "held", Holder: "w", WaitedSeconds: a.waited(got.WaitedSeconds), TTLSeconds: ptr(60.0),
		Metadata: map[string]string{"k": "v"},
		Locks: []setLock{
			{Name: "a", Mode: "exclusive"},
			{Name: "b", Mode: "shared"},
			{Name: "c", Mode: "semaphore", Limit: 9, Permits: 4},
		},
	}
	if diff := cmp.Diff(
		want, got, cmpopts.IgnoreFields(set{}, "ID", "Token", "ExpiresAt", "EnqueuedAt"),
		cmpopts.IgnoreFields(setLock{}, "Fence"),
	); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	renewed := c.put("/locksets/"+got.ID+"/renew", lockToken(got.Token)).set(http.StatusOK, "held")
	if !renewed.ExpiresAt.After(got.ExpiresAt.Time) {
		t.Errorf("renewed until %v, before until %v", renewed.ExpiresAt, got.ExpiresAt)
	}
	looked := c.get("/locksets/"+got.ID, lockToken(got.Token)).set(http.StatusOK, "held")
	if diff := cmp.Diff(got.Locks, looked.Locks); diff != "" {
		t.Errorf("locks of the set (-acquired +looked at)\n%s", diff)
	}
	for _, name := range []string{"a", "b", "c"} {
		if v := c.look(name); len(v.Holders) != 1 || v.Holders[0].Fence != got.Locks[0].Fence {
			t.Errorf("%s is held by %+v", name, v.Holders)
		}
	}
	c.delete("/locksets/"+got.ID, lockToken(got.Token)).wantNoContent()
	for _, name := range []string{"a", "b", "c"} {
		if v := c.look(name); len(v.Holders) != 0 {
			t.Errorf("%s is still held by %+v", name, v.Holders)
		}
	}
	for _, again := range []*answer{
		c.delete("/locksets/"+got.ID, lockToken(got.Token)),
		c.put("/locksets/"+got.ID+"/renew", lockToken(got.Token)),
		c.get("/locksets/"+got.ID, lockToken(got.Token)),
	} {
		again.wantProblem(lost("released"))
	}
}

// TestLockSetRefused: the refusal of a set lists the holders of each busy lock.
func TestLockSetRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("b", body(`{"holder":"first"}`))
	c.acquire("d", body(`{"holder":"other","mode":"shared"}`))
	a := c.post("/locksets", body(locksOf("d", "a", "c", "b")))
	a.wantProblem(problem{code: "lock_held", detail: heldDetail}, "locks", "holders", "waiting")
	var r struct {
		Locks []struct {
			Name    string   `json:"name"`
			Holders []holder `json:"holders"`
			Waiting *int     `json:"waiting"`
		} `json:"locks"`
	}
	if err := json.Unmarshal(a.body, &r); err != nil || len(r.Locks) != 2 {
		t.Fatalf("%v: want two busy locks", a)
	}
	if b := r.Locks[0]; b.Name != "b" || b.Holders[0].Holder != "first" ||
		b.Holders[0].Fence != *first.Fence || *b.Waiting != 0 {
		t.Errorf("%v: want b first, held by first", a)
	}
	if d := r.Locks[1]; d.Name != "d" || d.Holders[0].Holder != "other" ||
		d.Holders[0].Mode != "shared" {
		t.Errorf("%v: want d second, held by other", a)
	}
	if v := c.look("a"); len(v.Holders)+len(v.Waiters) != 0 {
		t.Errorf("a refused set left something behind in a: %+v", v)
	}
}

// TestAnyOfAPool: a set that wants one of its locks holds the first that is free, in the order of
// the request; while it waits, the answer has its position at each.
func TestAnyOfAPool(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	pool := func(more string) option {
		return body(`{"locks":[{"name":"c"},{"name":"a"},{"name":"b"}],"any":1` + more + `}`)
	}
	take := func(name string) set {
		s := c.post("/locksets", pool("")).set(http.StatusCreated, "held")
		if len(s.Locks) != 1 || s.Locks[0].Name != name || s.Any != 1 || *s.WaitedSeconds != 0 {
			t.Fatalf("holds %+v, any %d, want %s", s.Locks, s.Any, name)
		}
		return s
	}
	first := take("c")
	take("a")
	c.acquire("b")
	c.post("/locksets", pool("")).
		wantProblem(problem{code: "lock_held", detail: heldDetail}, "locks", "holders", "waiting")
	c.start("POST", "/locks/b", body(`{"wait_seconds":60}`))
	c.awaitWaiting("b", 1)
	s := c.post("/locksets", pool(`,"wait_seconds":60,"async":true,"holder":"w"`)).
		set(http.StatusAccepted, "waiting")
	want := []setLock{
		{Name: "a", Mode: "exclusive", Position: 1},
		{Name: "b", Mode: "exclusive", Position: 2},
		{Name: "c", Mode: "exclusive", Position: 1},
	}
	if diff := cmp.Diff(want, s.Locks); diff != "" || s.Any != 1 || *s.Position != 1 {
		t.Errorf("waits at %d, any %d (-want +got):\n%s", *s.Position, s.Any, diff)
	}
	c.delete("/locksets/"+first.ID, lockToken(first.Token)).wantNoContent()
	held := c.get("/locksets/"+s.ID+"?wait_seconds=20", lockToken(s.Token)).set(http.StatusOK, "held")
	if len(held.Locks) != 1 || held.Locks[0].Name != "c" ||
		held.Locks[0].Fence <= first.Locks[0].Fence {
		t.Errorf("holds %+v after the release of c", held.Locks)
	}
	if v := c.look("a"); *v.Waiting != 0 {
		t.Errorf("%d wait for a, which the set has left", *v.Waiting)
	}
	for _, some := range []string{"0", "4", "-1"} {
		c.post("/locksets", body(`{"locks":[{"name":"x"},{"name":"y"},{"name":"z"}],"any":`+some+`}`)).
			wantProblem(invalid("any", "must be between 1 and the number of locks of a set"))
	}
}

// TestWaitingLockSetIsResumed: one that is not granted within a request is gone on with,
// at another replica too.
func TestWaitingLockSetIsResumed(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("b")
	a := c.at(shared.brief).
		post("/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"wait_seconds":60}`), key("k"))
	s := a.set(http.StatusAccepted, "waiting")
	if a.header.Get("Location") != "/locksets/"+s.ID || *s.Position != 1 {
		t.Errorf("%v: want its location and position 1", a)
	}
	c.put("/locksets/"+s.ID+"/renew", lockToken(s.Token)).set(http.StatusOK, "waiting")
	resumed := c.start("GET", "/locksets/"+s.ID+"?wait_seconds=20", lockToken(s.Token))
	repeated := c.start(
		"POST", "/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"wait_seconds":60}`), key("k"),
	)
	c.release(e)
	if got := resumed.wait().set(http.StatusOK, "held"); got.ID != s.ID {
		t.Errorf("resumed %s, got %s", s.ID, got.ID)
	}
	if got := repeated.wait().set(http.StatusCreated, "held"); got.ID != s.ID {
		t.Errorf("repeated %s, got %s", s.ID, got.ID)
	}
}

func TestBadLockSetsAreRefused(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("n%02d", i))
		}
		return locksOf(names...)
	}
	c := newTenant(t)
	for name, tc := range map[string]struct {
		text string
		want problem
	}{
		"NoBody":   {``, invalid("locks", "must name at least one lock")},
		"NoLocks":  {`{}`, invalid("locks", "must name at least one lock")},
		"Null":     {`{"locks":null}`, invalid("locks", "must name at least one lock")},
		"Empty":    {`{"locks":[]}`, invalid("locks", "must name at least one lock")},
		"TooMany":  {many(33), invalid("locks", "must not be more than 32")},
		"Repeated": {locksOf("a", "b", "a"), invalid("locks[2].name", "repeats a; name each lock once")},
		"NoName":   {`{"locks":[{"name":"a"},{}]}`, invalid("locks[1].name", "must be a lock name: 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + -")},
		"BadName": {locksOf("a", "b/c"), invalid("locks[1].name", "must be a lock name: 1 to 200 of "+
			"the characters A-Z a-z 0-9 . _ : @ = + -")},
		"Mode": {
			`{"locks":[{"name":"a","mode":"both"}]}`,
			invalid("locks[0].mode", "must be exclusive, shared or semaphore"),
		},
		"LimitZero": {
			`{"locks":[{"name":"a"},{"name":"b","mode":"semaphore","limit":0}]}`,
			invalid("locks[1].limit", "must be a whole number from 1 to 1000000 for a semaphore"),
		},
		"LimitMissing": {
			`{"locks":[{"name":"b","mode":"semaphore"}]}`,
			invalid("locks[0].limit", "must be a whole number from 1 to 1000000 for a semaphore"),
		},
		"LimitExclusive": {
			`{"locks":[{"name":"b","limit":2}]}`,
			invalid("locks[0].limit", "is for the mode semaphore only; set that mode, or leave it out"),
		},
		"Names":      {`{"locks":["a"]}`, invalid("locks[0]", "must be an object")},
		"NullLock":   {`{"locks":[null]}`, invalid("locks[0].name", "must be a lock name: 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + -")},
		"NoList":     {`{"locks":{"name":"a"}}`, invalid("locks", "must be a list")},
		"NameNumber": {`{"locks":[{"name":1}]}`, invalid("locks[0].name", "must be a string")},
		"UnknownInside": {
			`{"locks":[{"name":"a","fence":1}]}`, invalid("locks[0].fence", "is not known here; leave it out"),
		},
		"TwiceInside": {
			`{"locks":[{"name":"a","name":"b"}]}`, invalid("locks[0].name", "must not be there twice"),
		},
		"CapsInside": {`{"locks":[{"Name":"a"}]}`, meant(unknown("locks[0].Name"), "name")},
		"ModeOutside": {
			`{"locks":[{"name":"a"}],"mode":"shared"}`, invalid("mode", "is not known here; leave it out"),
		},
		"TTL": {
			`{"locks":[{"name":"a"}],"ttl_seconds":1}`, invalid("ttl_seconds", "must be between 2 and 3600"),
		},
	} {
		t.Run(name, func(t *testing.T) { c.in(t).post("/locksets", body(tc.text)).wantProblem(tc.want) })
	}
	s := c.acquireSet(many(32))
	if len(s.Locks) != 32 {
		t.Errorf("%d locks, want 32", len(s.Locks))
	}
}

// TestTokenOfASetIsForThatSet: the token of a set is good for that set only, and that of a
// lock for no set.
func TestTokenOfASetIsForThatSet(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s, other, single := c.acquireSet(locksOf("a")), c.acquireSet(locksOf("b")), c.acquire("c")
	for name, a := range map[string]*answer{
		"SetOnLock":      c.put("/locks/a/renew", lockToken(s.Token)),
		"SetReleaseLock": c.delete("/locks/a", lockToken(s.Token)),
		"SetOnEntry":     c.get("/locks/a/entries/"+s.ID, lockToken(s.Token)),
		"LockOnSet":      c.put("/locksets/"+single.ID+"/renew", lockToken(single.Token)),
		"LockOnOther":    c.delete("/locksets/"+s.ID, lockToken(single.Token)),
		"OtherSet":       c.put("/locksets/"+s.ID+"/renew", lockToken(other.Token)),
		"OtherTenant":    newTenant(t).get("/locksets/"+s.ID, lockToken(s.Token)),
		"NoSuchSet":      c.get("/locksets/nothing", lockToken(s.Token)),
	} {
		want := tokenMismatch()
		if strings.HasPrefix(name, "Set") {
			want.detail = "the lock token is that of a set; send it to /locksets/" + s.ID
		}
		t.Run(name, func(t *testing.T) { a.t = t; a.wantProblem(want) })
	}
}

// TestAllLocksOfASetAreWithinThePatterns: every lock of a set has to be within the patterns.
func TestAllLocksOfASetAreWithinThePatterns(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	limited := c.within("orders:*")
	limited.acquireSet(locksOf("orders:1", "orders:2"))
	limited.post("/locksets", body(locksOf("orders:3", "stock:1"))).wantProblem(otherNames("stock:1"))
	s := c.acquireSet(locksOf("orders:3", "stock:1"))
	limited.put("/locksets/"+s.ID+"/renew", lockToken(s.Token)).wantProblem(otherNames("stock:1"))
	limited.get("/locksets/"+s.ID, lockToken(s.Token)).wantProblem(otherNames("stock:1"))
	limited.delete("/locksets/"+s.ID, lockToken(s.Token)).wantProblem(otherNames("stock:1"))
	c.delete("/locksets/"+s.ID, lockToken(s.Token)).wantNoContent()
}

// TestNamePatternsConfineKeysAndHolders: a token that is limited to scratch:* neither takes the
// Idempotency-Key of another worker's set nor gets its wait rejected by the worker's name.
func TestNamePatternsConfineKeysAndHolders(t *testing.T) {
	t.Parallel()
	worker := newTenant(t).named("worker")
	mallory := worker.as(
		func(cl *auth.Claims) { cl.Subject, cl.Locks = "mallory", []string{"scratch:*"} },
	)
	key := header("Idempotency-Key", "nightly")
	mallory.post(
		"/locksets", body(`{"locks":[{"name":"scratch:1"}],"holder":"w1","ttl_seconds":60}`), key,
	).set(http.StatusCreated, "held")
	worker.post("/locksets", body(`{"locks":[{"name":"pay:1"}],"holder":"w1","ttl_seconds":60}`), key).
		set(http.StatusCreated, "held")
	worker.acquire("scratch:2", body(`{"holder":"w2","ttl_seconds":60}`))
	mallory.join("scratch:2", body(`{"holder":"w1","ttl_seconds":60,"wait_seconds":40}`))
	a := worker.post("/locks/pay:1", body(`{"holder":"w2","ttl_seconds":60,"wait_seconds":0.2}`))
	a.wantStatus(http.StatusLocked)
}
