package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

type step struct {
	Holder   string `json:"holder"`
	WaitsFor string `json:"waits_for"`
	InTheWay string `json:"in_the_way"`
	Holds    bool   `json:"holds"`
}

// wantCycle checks a 409 and the cycle that it names.
func (a *answer) wantCycle(want ...step) {
	a.t.Helper()
	detail := "to wait would close a cycle of waits; release what the holder has, then acquire again"
	if len(want) == 1 {
		detail = fmt.Sprintf("the holder %s holds the lock %s already: it would wait for itself. "+
			"Release it first, or use the entry that holds", want[0].Holder, want[0].WaitsFor)
	}
	a.wantProblem(problem{code: "deadlock", detail: detail}, "cycle")
	var p struct {
		Cycle []step `json:"cycle"`
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Cycle); diff != "" {
		a.t.Errorf("%v: cycle (-want +got)\n%s", a, diff)
	}
}

func worker(name string) option  { return body(`{"holder":"` + name + `"}`) }
func waitsAs(name string) option { return body(`{"holder":"` + name + `","wait_seconds":60}`) }

func (c *client) admin() *client {
	return c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Admin} })
}

type deadlockPage struct {
	api.Learnt
	Deadlocks []struct {
		Tenant  string   `json:"tenant"`
		At      instant  `json:"at"`
		Refused string   `json:"refused"`
		Locks   []string `json:"locks"`
		Cycle   []step   `json:"cycle"`
		Waits   int      `json:"waits"`
	} `json:"deadlocks"`
}

func TestDeadlock(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	a := c.acquire("a", worker("w1"))
	b := c.acquire("b", worker("w2"))
	waits := c.join("b", waitsAs("w1"))
	cycle := []step{{"w2", "a", "w1", true}, {"w1", "b", "w2", true}}
	c.post("/locks/a", waitsAs("w2"), key("k")).wantCycle(cycle...)
	c.post("/locksets", body(`{"locks":[{"name":"c"},{"name":"a"}],"holder":"w2","wait_seconds":60}`)).
		wantCycle(cycle...)
	c.post("/locks/a", worker("w2")).refused("lock_held") // a try closes no cycle
	limited := c.within("a")
	limited.post("/locks/a", waitsAs("w2")).
		wantCycle(step{"w2", "a", "w1", true}, step{"w1", "", "w2", true})
	if v := c.look("a"); *v.Waiting != 0 || waits.answered() {
		t.Errorf("somebody else is touched: %+v", v)
	}
	var page deadlockPage
	c.admin().get("/admin/deadlocks?limit=1&tenant="+c.claims.Tenant).want(http.StatusOK, &page)
	if d := page.Deadlocks; len(d) != 1 || d[0].Waits != 2 || d[0].Refused != "w2" ||
		d[0].Tenant != c.claims.Tenant || !cmp.Equal(d[0].Cycle, cycle) ||
		!cmp.Equal(d[0].Locks, []string{"a"}) {
		t.Errorf("deadlocks: %+v", page)
	}
	c.release(b)
	c.release(waits.wait().held(http.StatusCreated))
	c.release(a)
	c.acquire("a", waitsAs("w2"), key("k")) // the key is not used up
}

// TestDeadlockOfOne: an entry that waits for its own holder is refused at once.
func TestDeadlockOfOne(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a", waitsAs("w1"), key("k"))
	c.post("/locks/a", waitsAs("w1")).wantCycle(step{"w1", "a", "w1", true})
	if again := c.acquire("a", waitsAs("w1"), key("k")); again.ID != e.ID || again.Token != e.Token {
		t.Error("the same key does not give what is held already")
	}
}

// TestRenewalTellsADeadlock: of an entry that waits and was refused after its
// request had been answered.
func TestRenewalTellsADeadlock(t *testing.T) {
	t.Parallel()
	claims := func(name string) []lock.Claim {
		return []lock.Claim{{Name: name, Mode: lock.Exclusive}}
	}
	one, two := &lock.Entry{ID: "1", Holder: "w1", Claims: claims("a")}, &lock.Entry{
		ID: "2", Holder: "w2", Claims: claims("b"),
	}
	c := over(t, &stub{err: &lock.Error{
		Code: lock.Deadlock, Detail: "to wait would close a cycle of waits; " +
			"release what the holder has, then acquire again",
		Cycle: []lock.Wait{
			{Waiter: one, Lock: "b", Blocker: two, Holds: true},
			{Waiter: two, Lock: "a", Blocker: one},
		},
	}})
	for _, path := range []string{"/locks/b/renew", "/locksets/" + someID + "/renew"} {
		c.put(path, lockToken(someToken)).
			wantCycle(step{"w1", "b", "w2", true}, step{"w2", "a", "w1", false})
	}
}

type orderReport struct {
	api.Learnt
	Contradictions []struct {
		Tenant  string  `json:"tenant"`
		FoundAt instant `json:"found_at"`
		Sides   []side  `json:"sides"`
	} `json:"contradictions"`
	Orders []struct {
		Tenant   string    `json:"tenant"`
		From     string    `json:"from"`
		To       string    `json:"to"`
		Seen     int       `json:"seen"`
		Examples []example `json:"examples"`
	} `json:"orders"`
	Known     *int `json:"known"`
	Forgotten *int `json:"forgotten"`
}

type side struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Example example `json:"example"`
}

type example struct {
	Holder string  `json:"holder"`
	Held   string  `json:"held"`
	Taken  string  `json:"taken"`
	At     instant `json:"at"`
}

// TestLockOrder: two workers that never meet take locks in opposite orders.
func TestLockOrder(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for worker, names := range map[string][]string{
		"w1": {"orders:1", "stock:7"}, "w2": {"stock:8", "orders:2"},
	} {
		for range 2 {
			first := c.acquire(names[0], waitsAs(worker))
			second := c.acquire(names[1], waitsAs(worker))
			c.release(second)
			c.release(first)
		}
	}
	c.look("orders:1") // waits for the view
	var got orderReport
	c.admin().get("/admin/lock-order?tenant="+c.claims.Tenant).want(http.StatusOK, &got)
	var refused api.DeadlockPage
	c.admin().get("/admin/deadlocks?tenant="+c.claims.Tenant).want(http.StatusOK, &refused)
	for _, learnt := range []api.Learnt{got.Learnt, refused.Learnt} {
		if since, err := time.Parse(time.RFC3339, string(learnt.Since)); err != nil ||
			time.Since(since) > time.Hour || time.Since(since) < 0 || learnt.Replica != replicaID {
			t.Errorf("it is learnt by %+v, %v", learnt, err)
		}
	}
	if len(got.Contradictions) != 1 || len(got.Orders) != 2 || *got.Known != 2 ||
		got.Orders[0].Seen != 2 {
		t.Fatalf("%+v, want one contradiction of two orders", got)
	}
	want := map[string]side{
		"w1": {
			From: "orders:*", To: "stock:*",
			Example: example{Holder: "w1", Held: "orders:1", Taken: "stock:7"},
		},
		"w2": {
			From: "stock:*", To: "orders:*",
			Example: example{Holder: "w2", Held: "stock:8", Taken: "orders:2"},
		},
	}
	for _, s := range got.Contradictions[0].Sides {
		if diff := cmp.Diff(
			want[s.Example.Holder], s, cmpopts.IgnoreFields(example{}, "At"),
		); diff != "" || s.Example.At.IsZero() {
			t.Errorf("side (-want +got)\n%s", diff)
		}
	}
}
