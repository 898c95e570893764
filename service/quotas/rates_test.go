package quotas_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

func sprint(v any) string { return fmt.Sprint(v) }

// took counts how many of n requests are taken.
func (r *replica) took(tenant string, l quota.Limit, n int) (taken int, last *quotas.Refusal) {
	for range n {
		if err := r.Take(tenant, l); err == nil {
			taken++
		} else if !errors.As(err, &last) {
			panic(err)
		}
	}
	return taken, last
}

// TestRates: each tenant has its second's worth of each rate, at each replica. What requests use up
// keeps nobody from renewing and releasing.
func TestRates(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 10, quota.Renewals: 4, quota.Releases: 0})
		settle()
		n, refused := a.took("acme", quota.Requests, 100)
		if n != 10 {
			t.Errorf("%d requests are taken at once", n)
		}
		var e *lock.Error
		if !errors.As(refused, &e) || e.Code != lock.RateLimited || e.RetryAfter <= 0 || e.RetryAfter > 100*time.Millisecond || *e.Quota != (lock.Exceeded{Name: "requests_per_second", Limit: 10, Used: 10}) {
			t.Errorf("refused with %+v, %+v", e, e.Quota)
		}
		if n, _ := a.took("acme", quota.Renewals, 100); n != 4 {
			t.Errorf("%d renewals are taken", n)
		}
		if n, none := a.took("acme", quota.Releases, 100); n != 0 || none.Why.RetryAfter != time.Minute {
			t.Errorf("%d releases are taken, where none may be", n)
		}
		if n, _ := a.took("other", quota.Requests, 100); n != 100 {
			t.Errorf("%d requests of another tenant are taken", n)
		}
		if n, _ := b.took("acme", quota.Requests, 100); n != 10 {
			t.Errorf("%d requests are taken at another replica", n)
		}
		if n := a.Spent("acme", quota.Requests); n != 10 || a.Spent("nobody", quota.Requests) != 0 {
			t.Errorf("%d are used up", n)
		}
		<-time.After(e.RetryAfter)
		if n, _ := a.took("acme", quota.Requests, 100); n != 1 {
			t.Errorf("after Retry-After %d are taken", n)
		}
		<-time.After(time.Hour)
		if n, _ := a.took("acme", quota.Requests, 100); n != 10 {
			t.Errorf("an hour later %d are taken", n)
		}
	})
}

// TestNext: who has to wait is told for how long, and is not refused; by tenant and replica.
func TestNext(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		a.sets(t, "acme", quota.Overrides{quota.WebhookAttempts: 10})
		a.sets(t, "none", quota.Overrides{quota.WebhookAttempts: 0})
		settle()
		next := func(r *replica) (counted int, after time.Duration) {
			for after = r.Next("acme", quota.WebhookAttempts); after == 0; after = r.Next("acme", quota.WebhookAttempts) {
				counted++
			}
			return counted, after
		}
		for _, r := range []*replica{a, b} {
			n, after := next(r)
			if n != 10 || after <= 0 || after > 100*time.Millisecond || r.Spent("acme", quota.WebhookAttempts) != 10 {
				t.Errorf("%d at once, and the next one after %s", n, after)
			}
			<-time.After(after)
			if n, _ := next(r); n != 1 {
				t.Errorf("%d when there is room for one", n)
			}
		}
		if after := a.Next("none", quota.WebhookAttempts); after != time.Minute {
			t.Errorf("where none may be the next one comes after %s", after)
		}
		if err := a.Take("acme", quota.Requests); err != nil {
			t.Errorf("a request is refused for it: %v", err)
		}
	})
}

// TestRatesChange: other limits hold from when they are known. Who was refused everything is taken
// again.
func TestRatesChange(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		for _, most := range []int{0, 5, 20, 3} {
			a.sets(t, "acme", quota.Overrides{quota.Requests: most})
			settle()
			if n, _ := b.took("acme", quota.Requests, 100); n != most {
				t.Errorf("%d are taken, want %d", n, most)
			}
		}
	})
}

// TestQuietRefusals: of the refusals of one rate the log is told one in a second, and of how many it
// was not.
func TestQuietRefusals(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 0, quota.Renewals: 0})
		settle()
		loud, silenced := 0, 0
		for range 100 {
			_, refused := a.took("acme", quota.Requests, 1)
			if !refused.Quiet {
				loud++
				silenced += refused.Silenced
			}
			<-time.After(50 * time.Millisecond)
		}
		if loud != 5 || silenced != 4*19 {
			t.Errorf("%d are told, and of %d that were not", loud, silenced)
		}
		if _, refused := a.took("acme", quota.Renewals, 1); refused.Quiet {
			t.Error("another rate is not told of")
		}
	})
}

// TestManyRefusals: who is refused again and again within a second is told apart from who waits.
func TestManyRefusals(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 0, quota.Renewals: 0})
		settle()
		for range 3 {
			for i := range 2000 {
				if _, refused := a.took("acme", quota.Requests, 1); refused.Hundreds != min(i/100, 10) {
					t.Fatalf("of the %d. refusal it is said that there are %d hundreds", i+1, refused.Hundreds)
				}
			}
			if _, refused := a.took("acme", quota.Renewals, 1); refused.Hundreds > 0 {
				t.Error("those of another rate are many")
			}
			<-time.After(2 * time.Second)
		}
	})
}

// TestEvenly: who is refused again and again gets what comes in as it comes, and not a burst of it
// after each pause. Who waits as he is told to may use it at once.
func TestEvenly(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1000, quota.Renewals: 10, quota.Releases: 1000})
		settle()
		for l, n := range map[quota.Limit]int{quota.Requests: 1150, quota.Renewals: 160, quota.Releases: 1050} { // 50 are not many
			_, _ = a.took("acme", l, n)
		}
		<-time.After(500 * time.Millisecond)
		for l, want := range map[quota.Limit]int{quota.Requests: 20, quota.Renewals: 1, quota.Releases: 500} {
			if n, _ := a.took("acme", l, want+10); n != want {
				t.Errorf("half a second after many refusals %d are taken at once, want %d", n, want)
			}
		}
		for range 20 {
			<-time.After(10 * time.Millisecond)
			if n, _ := a.took("acme", quota.Requests, 12); n != 10 {
				t.Errorf("in a hundredth of a second %d are taken", n)
			}
		}
		<-time.After(4 * time.Second)
		if n, _ := a.took("acme", quota.Requests, 1100); n != 1000 {
			t.Errorf("%d are taken at once after a while", n)
		}
	})
}

// TestEvenlyForLong: that lasts for as long as he is refused like that.
func TestEvenlyForLong(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1000})
		settle()
		_, _ = a.took("acme", quota.Requests, 1000)
		for pause := range 20 {
			_, _ = a.took("acme", quota.Requests, 400)
			<-time.After(300 * time.Millisecond)
			if n, _ := a.took("acme", quota.Requests, 400); n != 20 {
				t.Errorf("%d are taken at once after %d pauses", n, pause+1)
			}
		}
	})
}

// TestManyTenants: no more tenants are remembered than there is room for. While others have been idle,
// nobody who has used up what he has is forgotten.
func TestManyTenants(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1})
		settle()
		ask := func(round string, n int) {
			for i := range n {
				_, _ = a.took(fmt.Sprint(round, i), quota.Requests, 1)
			}
			if n := a.Remembered(); n > quotas.MaxPaced {
				t.Errorf("%d tenants are remembered", n)
			}
		}
		ask("a", quotas.MaxPaced-1)
		<-time.After(2 * time.Second)
		_, _ = a.took("acme", quota.Requests, 1)
		ask("keen", 50)
		ask("b", quotas.MaxPaced/2)
		for i := range 50 { // of one alone it would be chance
			if a.Spent(fmt.Sprint("keen", i), quota.Requests) != 1 {
				t.Fatal("who has just asked was forgotten, and idle ones were not")
			}
		}
		if n, _ := a.took("acme", quota.Requests, 1); n != 0 {
			t.Error("who has just asked was forgotten, and idle ones were not")
		}
		ask("c", 2*quotas.MaxPaced) // within one second
	})
}

// TestTakingAllocatesNothing.
func TestTakingAllocatesNothing(t *testing.T) {
	b := quotas.New(quotas.Config{})
	if n := testing.AllocsPerRun(1000, func() {
		if err := b.Take("acme", quota.Requests); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// TestRateChangesForWhoOwes: what is not used of one limit is not counted against another; what was used, and what is owed, is.
func TestRateChangesForWhoOwes(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		for _, c := range []struct{ from, owed, to, want, used int }{
			{5, 0, 100, 100, 100},
			{100, 0, 5, 5, 5},
			{0, 0, 100, 100, 100},
			{10, 25, 100, 75, 100}, // of the 25 it has paid 10 until the other limit is known, which count as used
			{100, 150, 10, 0, 10 + 50},
			{10, 25, 0, 0, 0},
		} {
			a.sets(t, "acme", quota.Overrides{quota.Requests: c.from})
			settle()
			_, _ = a.took("acme", quota.Requests, 1)
			<-time.After(time.Minute)
			if c.owed > 0 {
				a.Owe("acme", quota.Requests, c.from+c.owed)
			}
			a.sets(t, "acme", quota.Overrides{quota.Requests: c.to})
			settle()
			if n, _ := a.took("acme", quota.Requests, 200); n != c.want {
				t.Errorf("%+v: %d are taken at once", c, n)
			}
			if n := a.Spent("acme", quota.Requests); n != c.used {
				t.Errorf("%+v: %d are used up then", c, n)
			}
			<-time.After(time.Hour)
		}
	})
}
