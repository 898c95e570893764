package quotas_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

// TestPrice: what costs more than may be used at once is had, and then nothing until it is paid for. That
// is of one rate and tenant.
func TestPrice(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 10})
		settle()
		for range 3 {
			if n, _ := a.took("acme", quota.Requests, 1); n != 1 {
				t.Fatal("nothing is taken of who owes nothing")
			}
			if err := a.Charge("acme", quota.Requests, 31); err != nil {
				t.Fatalf("what is dear is refused: %v", err)
			}
			n, refused := a.took("acme", quota.Requests, 1)
			if n != 0 {
				t.Fatal("another one is taken of who owes")
			}
			if refused.Why.Quota.Used != 32 || refused.Why.Quota.Limit != 10 || a.Spent("acme", quota.Requests) != 32 {
				t.Errorf("it is refused with %+v; %d are used up", refused.Why.Quota, a.Spent("acme", quota.Requests))
			}
			if after := refused.Why.RetryAfter; after != 2300*time.Millisecond {
				t.Errorf("there is room again after %v", after)
			}
			if err := a.Charge("acme", quota.Requests, 1); !errors.As(err, &refused) {
				t.Errorf("more is charged to who owes: %v", err)
			}
			for _, free := range []quota.Limit{quota.Renewals, quota.Releases} {
				if n, _ := a.took("acme", free, 5); n != 5 {
					t.Errorf("%d of %v are taken", n, free)
				}
			}
			if n, _ := a.took("other", quota.Requests, 5); n != 5 {
				t.Errorf("%d of another tenant are taken", n)
			}
			<-time.After(2300*time.Millisecond - time.Millisecond)
			if n, _ := a.took("acme", quota.Requests, 1); n != 0 {
				t.Error("it is taken before it is paid for")
			}
			<-time.After(time.Millisecond)
			if n, _ := a.took("acme", quota.Requests, 1); n != 1 {
				t.Error("it is not taken though all is paid for")
			}
			<-time.After(time.Hour)
		}
	})
}

// TestPriceOfOneAtATime: with one request a second, what costs 32 is had every 32 seconds.
func TestPriceOfOneAtATime(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1})
		settle()
		began := time.Now()
		for range 3 {
			for a.Take("acme", quota.Requests) != nil {
				<-time.After(100 * time.Millisecond)
			}
			if err := a.Charge("acme", quota.Requests, 31); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began).Round(time.Second); took != 64*time.Second {
			t.Errorf("the third is taken after %v", took)
		}
	})
}

// TestRoundingIsNoDebt: who has used up what there is, to the last, owes nothing.
func TestRoundingIsNoDebt(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		for _, most := range []int{3, 7, 11} {
			a.sets(t, "acme", quota.Overrides{quota.Requests: most})
			settle()
			for i := range 1000 {
				n, refused := a.took("acme", quota.Requests, 1)
				for ; n == 0; n, refused = a.took("acme", quota.Requests, 1) {
					<-time.After(refused.Why.RetryAfter)
				}
				if err := a.Charge("acme", quota.Requests, 0); err != nil {
					t.Fatalf("%d a second: of the %d. it is said that something is owed: %v", most, i+1, err)
				}
			}
		}
	})
}

// TestOwes: whether a tenant owes can be asked for nothing, however often.
func TestOwes(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1000})
		settle()
		owes := func(want bool) {
			t.Helper()
			for range 200 {
				if a.Owes("acme", quota.Requests) != want || a.Owes("acme", quota.Renewals) || a.Owes("other", quota.Requests) {
					t.Fatalf("want %v", want)
				}
			}
		}
		owes(false)
		_, _ = a.took("acme", quota.Requests, 1)
		a.Owe("acme", quota.Requests, 1100)
		owes(true)
		<-time.After(time.Second)
		owes(false)
		if n, _ := a.took("acme", quota.Requests, 1100); n < 800 { // not what is left to who does not wait
			t.Errorf("%d are taken at once", n)
		}
	})
}

// TestOwe: what turned out dear is paid for, whatever is owed already, and also by who has limits again
// that nobody could pay with.
func TestOwe(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 10})
		settle()
		_, _ = a.took("acme", quota.Requests, 1)
		a.Owe("acme", quota.Requests, 20)
		a.Owe("acme", quota.Requests, 20)
		if n := a.Spent("acme", quota.Requests); n != 41 {
			t.Errorf("%d are used up", n)
		}
		a.sets(t, "acme", quota.Overrides{quota.Requests: 0})
		settle()
		a.Owe("acme", quota.Requests, 20)
		var refused *quotas.Refusal
		if err := a.Charge("acme", quota.Requests, 1); !errors.As(err, &refused) || refused.Why.RetryAfter != time.Minute {
			t.Errorf("%v", err)
		}
	})
}

// TestOweWithin: for what is no request's a tenant is not refused for longer than is said, whatever it costs, and also
// on top of what it owes otherwise.
func TestOweWithin(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 10})
		settle()
		spent := func(more, want int) {
			t.Helper()
			a.OweWithin("acme", quota.Requests, more, 2)
			if n := a.Spent("acme", quota.Requests); n != want {
				t.Errorf("%d are used up, want %d", n, want)
			}
		}
		spent(3, 3)
		spent(100_000, 30)
		spent(1, 30)
		a.Owe("acme", quota.Requests, 10)
		spent(1, 40)
		<-time.After(2 * time.Second)
		spent(1, 21)
		spent(100, 30)
		<-time.After(2*time.Second + time.Millisecond)
		if a.Owes("acme", quota.Requests) {
			t.Error("it is refused for longer than 2 s")
		}
	})
}

// TestDebtIsRemembered: who owes is not forgotten for others while there is room.
func TestDebtIsRemembered(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Requests: 1})
		settle()
		_, _ = a.took("acme", quota.Requests, 1)
		a.Owe("acme", quota.Requests, 30)
		for i := range quotas.MaxPaced - 1 {
			_, _ = a.took(fmt.Sprint("a", i), quota.Requests, 1)
		}
		<-time.After(5 * time.Second)
		for i := range quotas.MaxPaced / 2 {
			_, _ = a.took(fmt.Sprint("b", i), quota.Requests, 1)
		}
		if n, _ := a.took("acme", quota.Requests, 1); n != 0 {
			t.Error("what is owed was forgotten")
		}
	})
}
