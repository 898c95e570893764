package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

var (
	worker   = audit.Who{Subject: "leaked", Tenant: "acme", Scope: "webhooks:write"}
	operator = audit.Who{Subject: "ops", Tenant: "home", Scope: "admin"}
)

// did puts on record that somebody did something to a webhook of the tenant so long ago.
func (l *ledger) did(tenant, action string, by audit.Who, ago time.Duration) *audit.Record {
	l.Helper()
	r := recordOf(tenant, "*", l.now.Add(-ago))
	r.Action, r.By, r.Result, r.Object = action, by, audit.Asked, audit.Object{Locks: []string{"*"}, Webhook: &audit.Webhook{ID: "w1"}}
	if _, err := l.records.Put(l.Context(), r.Put()); err != nil {
		l.Fatal(err)
	}
	return r
}

func (l *ledger) trim() {
	l.Helper()
	if err := l.log.Trim(l.Context()); err != nil {
		l.Fatal(err)
	}
}

// kept counts what is on record, by tenant and action.
func (l *ledger) kept() map[string]int {
	l.Helper()
	n := map[string]int{}
	for _, r := range l.all(audit.Query{Limit: 1000}) {
		n[r.Tenant+" "+r.Action]++
	}
	return n
}

func (l *ledger) want(want map[string]int) {
	l.Helper()
	if diff := cmp.Diff(want, l.kept()); diff != "" {
		l.Errorf("on record (-want +got)\n%s", diff)
	}
}

// TestTrimOfUsers: who may use webhooks pushes out nothing of what operators did, to webhooks or else,
// and by what he can do without end nothing of what he did before.
func TestTrimOfUsers(t *testing.T) {
	l := newLedger(t)
	l.log.Keep(10, 1000)
	l.did("acme", audit.PauseWebhook, operator, 10*day)
	for i := range 9 {
		l.put("acme", "a", 10*day+time.Duration(i)*time.Second)
	}
	l.did("acme", audit.CreateWebhook, worker, 9*day)
	l.did("acme", audit.RotateWebhook, worker, 8*day)
	for i := range 20 {
		for _, action := range []string{audit.TestWebhook, audit.Redeliver, audit.PauseWebhook, audit.ResumeWebhook} {
			l.did("acme", action, worker, time.Duration(i+1)*time.Minute)
		}
	}
	l.did("acme", audit.TestWebhook, worker, 0)
	l.trim()
	l.want(map[string]int{"acme webhook.pause": 1, "acme entry.revoke": 9, "acme webhook.create": 1, "acme webhook.rotate": 1, "acme webhook.test": 1})
	for i := range 5 {
		l.did("acme", audit.ChangeWebhook, worker, time.Duration(i)*time.Hour)
		l.did("acme", audit.DeleteWebhook, worker, time.Duration(i)*time.Hour)
	}
	l.trim()
	l.want(map[string]int{"acme webhook.pause": 1, "acme entry.revoke": 9, "acme webhook.change": 1, "acme webhook.delete": 1, "acme webhook.test": 1})
}

// TestTrimIsFair: many tenants that have much on record push out nothing of one that has little.
func TestTrimIsFair(t *testing.T) {
	l := newLedger(t)
	l.log.Keep(50, 500)
	want := map[string]int{"quiet webhook.delete": 1, "quiet entry.revoke": 1}
	l.did("quiet", audit.DeleteWebhook, audit.Who{Subject: "s", Tenant: "quiet", Scope: "webhooks:write"}, 80*day)
	l.put("quiet", "a", 80*day)
	for n := range 12 {
		busy := fmt.Sprint("busy", n)
		for i := range 50 {
			l.did(busy, audit.CreateWebhook, worker, time.Duration(i)*time.Minute)
			l.put(busy, "a", time.Duration(i)*time.Minute)
		}
		want[busy+" webhook.create"], want[busy+" entry.revoke"] = 8, 41 // of 99 and 499 for twelve
	}
	l.trim()
	l.want(want)
}

// TestTrimManyTenants: if there are more tenants than places, the newest have them.
func TestTrimManyTenants(t *testing.T) {
	l := newLedger(t)
	l.log.Keep(2, 3)
	want := map[string]int{}
	for n := range 5 {
		tenant := fmt.Sprint("t", n)
		l.put(tenant, "a", time.Duration(n)*day)
		l.put(tenant, "a", time.Duration(n)*day+time.Second)
		if n < 3 {
			want[tenant+" entry.revoke"] = 1
		}
	}
	l.trim()
	l.want(want)
}

// slow is a store that takes a second to delete.
type slow struct{ store.RecordStore }

func (s slow) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	if err := store.Pause(ctx, time.Second); err != nil {
		return err
	}
	return s.RecordStore.Delete(ctx, k, version)
}

// TestTrimPace: several records are forgotten at once, and where many were, the next round comes soon.
func TestTrimPace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLedger(t)
		log := audit.NewLog(slow{l.records}, func() time.Time { return l.now })
		for range 1000 {
			l.put("acme", "a", 91*day)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			log.Run(ctx, func() bool { return true }, slog.New(slog.DiscardHandler))
		}()
		stored := func(after time.Duration) (n int) {
			if err := store.Pause(ctx, after); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for i := range 16 {
				for _, err := range store.EachRecord(ctx, l.records, store.RecordQuery{Kind: fmt.Sprintf("audit-%02d", i)}) {
					if n++; err != nil {
						t.Fatal(err)
					}
				}
			}
			return n
		}
		if n := stored(65 * time.Second); n != 0 {
			t.Errorf("after a minute there are still %d", n)
		}
		l.put("acme", "a", 91*day)
		if n := stored(time.Minute); n != 0 {
			t.Error("after many were forgotten the next round comes late")
		}
		l.put("acme", "a", 91*day)
		if n := stored(5 * time.Minute); n != 1 {
			t.Error("after few were forgotten the next round comes early")
		}
		stop()
		<-ended
	})
}

// TestJournalOfUsers: who uses webhooks does less in a short time than operators, and keeps none of these
// from acting, nor anybody from deleting.
func TestJournalOfUsers(t *testing.T) {
	l := newLedger(t)
	j := audit.NewJournal(l.records, func() time.Time { return l.now })
	most := func(action string, by audit.Who) (n int) {
		for {
			r := recordOf("acme", "*", l.now)
			r.Action, r.By = action, by
			err := j.Put(t.Context(), r)
			if err != nil {
				if !errors.Is(err, lock.RateLimited) {
					t.Fatal(err)
				}
				return n
			}
			n++
		}
	}
	own := audit.Who{Subject: "ops", Tenant: "acme", Scope: "tenant-admin"}
	for _, c := range []struct {
		what, action string
		by           audit.Who
		want         int
	}{
		{"users", audit.ChangeWebhook, worker, 120},
		{"users test", audit.TestWebhook, worker, 0},
		{"users delete", audit.DeleteWebhook, worker, 120},
		{"operators", audit.PauseWebhook, own, 200},
	} {
		if n := most(c.action, c.by); n != c.want {
			t.Errorf("%s: %d at once, want %d", c.what, n, c.want)
		}
	}
	l.now = l.now.Add(2 * time.Second)
	if n, m := most(audit.TestWebhook, worker), most(audit.PauseWebhook, own); n != 2 || m != 20 {
		t.Errorf("after 2 s users may do %d and operators %d, want 2 and 20", n, m)
	}
}

// TestFrees: what takes something out of the store may be put on record in a full one.
func TestFrees(t *testing.T) {
	for action, want := range map[string]bool{
		audit.RevokeEntry: true, audit.RevokeSet: true, audit.OpenLocks: true, audit.ResetQuota: true, audit.DeleteWebhook: true,
		audit.CloseLocks: false, audit.SetQuota: false, audit.CreateWebhook: false, audit.Redeliver: false,
	} {
		if put := (&audit.Record{At: time.Now(), Tenant: "acme", Action: action}).Put(); put.Frees != want {
			t.Errorf("%s: %v", action, put.Frees)
		}
	}
}
