package quota_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// TestSet: what is set at one replica holds at the other within a second, for that tenant alone,
// and each change is on record. No operator sets the replicas' own limits.
func TestSet(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		if diff := cmp.Diff(quota.Standard(), b.Of("acme")); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		made := a.sets(t, "acme", quota.Overrides{"held_locks": 7, "sets": 0})
		if made.Version == 0 || made.By != "ops" || made.Reason != "a migration" || made.At.IsZero() ||
			made.Limits[quota.HeldLocks] != 7 {
			t.Errorf("made %+v", made)
		}
		settle()
		want := quota.Overrides{"held_locks": 7, "sets": 0}.Over(quota.Standard())
		for _, r := range []*replica{a, b} {
			if diff := cmp.Diff(want, r.Of("acme")); diff != "" || *r.Of("other") != *quota.Standard() {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		read, err := b.Get(t.Context(), "acme")
		if diff := cmp.Diff(made, read); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		b.sets(t, "acme", quota.Overrides{"waiting": 1}) // and nothing else
		if err := a.Reset(t.Context(), quota.Change{Tenant: "other", By: operator()}); err != nil {
			t.Error(err)
		}
		settle()
		if l := a.Of("acme"); l[quota.HeldLocks] != quota.Standard()[quota.HeldLocks] ||
			l[quota.Waiting] != 1 {
			t.Errorf("what was set before holds still: %v", l)
		}
		for range 2 {
			if err := a.Reset(t.Context(), quota.Change{Tenant: "acme", By: operator()}); err != nil {
				t.Error(err)
			}
		}
		settle()
		if l := b.Of("acme"); *l != *quota.Standard() {
			t.Errorf("after the end of it %v", l)
		}
		onRecord(
			t, a, "quota.reset reset map[]", "quota.set set map[waiting:1]",
			"quota.set set map[held_locks:7 sets:0]",
		)
		for _, tenant := range []string{lock.OwnTenant, "No Tenant"} {
			if _, err := a.Set(t.Context(), quota.Change{Tenant: tenant, By: operator()}); !errors.Is(
				err, lock.NotFound,
			) {
				t.Errorf("%s: %v", tenant, err)
			}
		}
	})
}

// onRecord checks what is in the audit, the newest first.
func onRecord(t *testing.T, r *replica, want ...string) {
	t.Helper()
	page, err := audit.NewLog(r.records, audit.DefaultRetention, nil).
		Page(t.Context(), audit.Query{Tenant: "acme", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range page.Records {
		got = append(got, strings.TrimSpace(
			strings.Join([]string{one.Action, one.Result, fmt.Sprint(one.Object.Quota)}, " "),
		))
		if one.By != operator() || one.Object.Locks == nil {
			t.Errorf("on record is %+v", one)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

// TestVersions: a change of what was seen is refused if another is there, and nothing of it is on
// record.
func TestVersions(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		none, made := uint64(0), a.sets(t, "acme", quota.Overrides{"sets": 1}).Version
		wrong := made + 1
		for _, v := range []*uint64{&none, &wrong} {
			c := quota.Change{Tenant: "acme", Version: v, By: operator()}
			if _, err := a.Set(t.Context(), c); !errors.Is(err, lock.Changed) {
				t.Errorf("version %d: %v", *v, err)
			}
			if err := a.Reset(t.Context(), c); !errors.Is(err, lock.Changed) {
				t.Errorf("version %d: %v", *v, err)
			}
		}
		onRecord(t, a, "quota.set set map[sets:1]")
		if s, err := a.Set(
			t.Context(), quota.Change{Tenant: "acme", Version: &made, By: operator()},
		); err != nil || s.Version <= made || s.Overrides == nil {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := a.Set(
			t.Context(), quota.Change{Tenant: "acme", Reason: "short", By: operator()},
		); !errors.Is(err, lock.InvalidRequest) {
			t.Errorf("a reason that is none: %v", err)
		}
	})
}

// TestDamaged: where what is set cannot be read, the defaults hold, which is logged once, and told.
// It can be replaced, or taken back.
func TestDamaged(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		k := store.RecordKey{Kind: quota.Kind, Tenant: "acme", ID: "limits"}
		b.sets(t, "other", quota.Overrides{"sets": 5})
		for _, text := range []string{
			"", "{", `{"limits":null}`, `{"by":"ops"}`, `{"limits":{"sets":-1}}`,
			`{"limits":{"sets":"hunter2"}}`,
		} {
			version := a.sets(t, "acme", quota.Overrides{"sets": 1}).Version
			settle()
			synctest.Wait()
			b.log.Reset()
			if _, err := a.records.Put(
				t.Context(), store.RecordPut{RecordKey: k, Value: []byte(text), Version: version},
			); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			synctest.Wait()
			if *b.Of("acme") != *quota.Standard() || b.Of("other")[quota.Sets] != 5 {
				t.Errorf("%q: the limits are %v", text, b.Of("acme"))
			}
			if log := b.log.String(); strings.Count(log, "ERROR") != 1 || !strings.Contains(log, "acme") ||
				strings.Contains(log, "hunter2") {
				t.Errorf("%q: the log is\n%s", text, log)
			}
			s, err := b.Get(t.Context(), "acme")
			if err != nil || !s.Damaged || s.Version == 0 || s.Overrides != nil ||
				*s.Limits != *quota.Standard() {
				t.Errorf("%q: it is told as %+v, %v", text, s, err)
			}
		}
		if err := a.Reset(t.Context(), quota.Change{Tenant: "acme", By: operator()}); err != nil {
			t.Error(err)
		}
		if s, err := b.Get(t.Context(), "acme"); err != nil || s.Damaged || s.Version != 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// TestCutOff: what was read last holds while the store cannot be asked.
func TestCutOff(t *testing.T) {
	for _, how := range []memory.Cut{memory.Silent, memory.Deaf, memory.Broken} {
		run(t, func(t *testing.T, a, b *replica) {
			a.sets(t, "acme", quota.Overrides{"sets": 1})
			settle()
			b.cable.Cut(how)
			a.sets(t, "acme", quota.Overrides{"sets": 2})
			<-time.After(time.Hour)
			if n := b.Of("acme")[quota.Sets]; n != 1 {
				t.Errorf("%s: cut off it is %d", how, n)
			}
			if _, err := b.Get(t.Context(), "acme"); !errors.Is(err, lock.StoreUnavailable) {
				t.Errorf("%s: it is told: %v", how, err)
			}
			b.cable.Cut("")
			<-time.After(time.Minute)
			if n := b.Of("acme")[quota.Sets]; n != 2 {
				t.Errorf("%s: afterwards it is %d", how, n)
			}
		})
	}
}
