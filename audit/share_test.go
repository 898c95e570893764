package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

func user(subject string) audit.Who {
	return audit.Who{Subject: subject, Tenant: "acme", Scope: "webhooks:write"}
}

func operator(subject string) audit.Who {
	return audit.Who{Subject: subject, Tenant: "acme", Scope: "tenant-admin"}
}

// discard is a store that keeps nothing, so that thousands of records take no time.
type discard struct{ err error }

func (d discard) Put(context.Context, store.RecordPut) (uint64, error) { return 1, d.err }

func (l *ledger) journal() *audit.Journal {
	return audit.NewJournal(discard{}, func() time.Time { return l.now }, nil)
}

// most puts an action on record until the journal rejects it, and returns how often it did not.
func (l *ledger) most(j *audit.Journal, action string, by audit.Who) (n int) {
	l.Helper()
	for {
		r := recordOf("acme", "a", time.Time{})
		r.Action, r.By = action, by
		err := j.Put(l.Context(), r)
		if e, is := errors.AsType[*lock.Error](err); is && e.Code == lock.RateLimited &&
			e.RetryAfter > 0 {
			return n
		}
		if n++; err != nil || n > 100_000 {
			l.Fatalf("after %d: %v", n, err)
		}
	}
}

// TestTrimKeepsWhatIsYoungerThanTheRetention, however much there is.
func TestTrimKeepsWhatIsYoungerThanTheRetention(t *testing.T) {
	l := newLedger(t)
	for i := range 300 {
		l.put("busy", "a", time.Duration(i)*time.Minute)
	}
	l.put("quiet", "a", 30*day)
	l.put("old", "a", 30*day+time.Second)
	l.put("old", "a", 89*day)
	for range 2 {
		if err := l.log.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(l.all(audit.Query{Limit: 1000})); n != 301 {
			t.Errorf("%d are on record, want 301", n)
		}
	}
	l.now = l.now.Add(200 * day) // nothing is left of a time without trimming
	if err := l.log.Trim(t.Context()); err != nil || l.stored() != 0 {
		t.Errorf("after 200 days: %v, %d records", err, l.stored())
	}
}

func (l *ledger) stored() (n int) {
	l.Helper()
	for i := range 16 {
		for _, err := range store.EachRecord(
			l.Context(), l.records, store.RecordQuery{Kind: fmt.Sprintf("audit-%02d", i)},
		) {
			if n++; err != nil {
				l.Fatal(err)
			}
		}
	}
	return n
}

func TestRunTrimsWhileItIsThisReplicasWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLedger(t)
		l.put("acme", "a", 31*day)
		ctx, stop := context.WithCancel(t.Context())
		var mine atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.log.Run(ctx, mine.Load, slog.New(slog.DiscardHandler))
		}()
		synctest.Wait()
		before := l.stored()
		mine.Store(true)
		_ = store.Pause(ctx, 11*time.Minute)
		synctest.Wait()
		if n := l.stored(); before != 1 || n != 0 {
			t.Errorf("%d records before, %d after, want 1 and 0", before, n)
		}
		stop()
		<-ended
	})
}

// TestActorCannotFillTheAudit: an operator who opens and closes without end uses up own shares,
// and no other operator's.
func TestActorCannotFillTheAudit(t *testing.T) {
	l := newLedger(t)
	j := l.journal()
	for _, c := range []struct {
		action, subject string
		want            int
	}{
		{audit.CloseLocks, "mallory", 1000},
		{audit.OpenLocks, "mallory", 1000}, // whatever was closed can be opened
		{audit.RevokeEntry, "mallory", 1000},
		{audit.SetQuota, "mallory", 0},
		{audit.RevokeEntry, "ops", 750}, // a quarter of what mallory left
	} {
		if n := l.most(j, c.action, operator(c.subject)); n != c.want {
			t.Errorf("%s by %s: %d, want %d", c.action, c.subject, n, c.want)
		}
	}
	l.now = l.now.Add(day)
	if n := l.most(j, audit.CloseLocks, operator("mallory")); n != 500 {
		t.Errorf("after a day %d, want 500", n)
	}
}

// TestClosuresLeaveRevocationsTheirShare: whatever other subjects close and open, revocations and
// rotations have all of their share, and closures of a fresh subject a part.
func TestClosuresLeaveRevocationsTheirShare(t *testing.T) {
	l := newLedger(t)
	j := l.journal()
	for i := range 4 {
		by := operator(fmt.Sprint("flood-", i))
		l.most(j, audit.CloseLocks, by)
		l.most(j, audit.OpenLocks, by)
		by.Scope = user("").Scope
		l.most(j, audit.CreateWebhook, by)
		l.most(j, audit.DeleteWebhook, by)
	}
	for _, c := range []struct {
		action string
		by     audit.Who
		least  int
	}{
		{audit.RevokeEntry, operator("ops"), 1000},
		{audit.RevokeSet, operator("ops-2"), 750},
		{audit.RotateWebhook, operator("ops-3"), 500},
		{audit.RotateWebhook, user("u"), 1000},
		{audit.PauseWebhook, user("u-2"), 750},
		{audit.CloseLocks, operator("ops"), 300},
		{audit.OpenLocks, operator("ops"), 300},
	} {
		if n := l.most(j, c.action, c.by); n < c.least {
			t.Errorf("%s by %s: %d, want %d", c.action, c.by.Subject, n, c.least)
		}
	}
}

// TestSubjectsOfATenantShareItsPool: many subjects put no more on record than a few, and leave
// some to the next one.
func TestSubjectsOfATenantShareItsPool(t *testing.T) {
	l := newLedger(t)
	j, total := l.journal(), 0
	for i := range 8 {
		total += l.most(j, audit.CreateWebhook, user(fmt.Sprint("u", i)))
	}
	if total < 3500 || total > 3600 {
		t.Errorf("%d are on record, want nine tenths of 4000", total)
	}
	if n := l.most(j, audit.CreateWebhook, user("u8")); n < 90 {
		t.Errorf("the next one has %d, want a quarter of what is left", n)
	}
	if n := l.most(j, audit.RevokeEntry, operator("ops")); n != 1000 {
		t.Errorf("users leave %d to operators, want 1000", n)
	}
	if n := l.most(j, audit.DeleteWebhook, user("u9")); n != 1000 {
		t.Errorf("users can delete %d, want 1000", n)
	}
	other := operator("ops")
	other.Tenant = "bolt"
	if n := l.most(j, audit.RevokeEntry, other); n != 1000 {
		t.Errorf("another tenant has %d, want 1000", n)
	}
}

// TestUsersWhoDeleteLeaveOperatorsTheirUndoing: webhooks that are deleted again and again use up
// what users share, and operators can open what they closed.
func TestUsersWhoDeleteLeaveOperatorsTheirUndoing(t *testing.T) {
	l := newLedger(t)
	j := l.journal()
	for i := range 8 {
		l.most(j, audit.DeleteWebhook, user(fmt.Sprint("u", i)))
	}
	if n := l.most(j, audit.OpenLocks, operator("ops")); n != 1000 {
		t.Errorf("users leave %d to operators, want 1000", n)
	}
}

// TestManySubjectsDoNotEvictThePool of their tenant.
func TestManySubjectsDoNotEvictThePool(t *testing.T) {
	l := newLedger(t)
	j, n := l.journal(), 0
	for i := range 30_000 {
		r := recordOf("acme", "a", time.Time{})
		r.By = operator(fmt.Sprint("s", i))
		if j.Put(t.Context(), r) == nil {
			n++
		}
	}
	if n < 3990 || n > 4000 {
		t.Errorf("%d are on record, want 4000", n)
	}
}

// TestLargeRecordsCostMore: a share bounds bytes.
func TestLargeRecordsCostMore(t *testing.T) {
	l := newLedger(t)
	j, n := l.journal(), 0
	for {
		r := recordOf("acme", strings.Repeat("n", 3500), time.Time{})
		r.By = operator("ops")
		if j.Put(t.Context(), r) != nil {
			break
		}
		n++
	}
	if n != 250 {
		t.Errorf("%d records of 3.5 KiB, want 250", n)
	}
}

// TestRecordsAreLogged: as they are stored, with audit=true; and one that may be there, which says
// so.
func TestRecordsAreLogged(t *testing.T) {
	l := newLedger(t)
	for _, c := range []struct {
		err    error
		logged bool
	}{
		{nil, true},
		{lock.Errorf(lock.StoreUnavailable, "gone"), false},
		{&lock.Error{Code: lock.StoreUnavailable, OutcomeUnknown: true}, false}, // the action is not done
	} {
		var log bytes.Buffer
		j := audit.NewJournal(
			discard{c.err}, func() time.Time { return l.now }, slog.New(slog.NewJSONHandler(&log, nil)),
		)
		r := recordOf("acme", "orders:1", time.Time{})
		if err := j.Put(t.Context(), r); (err == nil) != (c.err == nil) {
			t.Fatal(err)
		}
		if (log.Len() > 0) != c.logged {
			t.Errorf("%v: the log has %s", c.err, &log)
		}
		if !c.logged {
			continue
		}
		var line struct {
			Level  string
			Audit  bool
			ID     string
			Tenant string
			Record map[string]any
		}
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if !line.Audit || line.ID != r.ID || line.Tenant != "acme" || line.Record["reason"] != r.Reason ||
			line.Record["peer"] != "10.0.0.1" || line.Record["server_request_id"] != "s1" {
			t.Errorf("the log has %s", &log)
		}
	}
}

// TestUnknownOutcomeOfARevocationIsLogged: the caller of Admit may have done the action.
func TestUnknownOutcomeOfARevocationIsLogged(t *testing.T) {
	var log bytes.Buffer
	j := audit.NewJournal(discard{}, nil, slog.New(slog.NewJSONHandler(&log, nil)))
	r := recordOf("acme", "a", time.Time{})
	if _, err := j.Admit(r); err != nil {
		t.Fatal(err)
	}
	j.Tell(t.Context(), r, &lock.Error{Code: lock.StoreUnavailable, OutcomeUnknown: true})
	if !strings.Contains(log.String(), `"outcome_unknown":true`) {
		t.Errorf("the log has %s", &log)
	}
}

// TestFrees: what takes something out of the store may be put on record in a full one.
func TestFrees(t *testing.T) {
	for action, want := range map[string]bool{
		audit.RevokeEntry: true, audit.RevokeSet: true, audit.OpenLocks: true, audit.ResetQuota: true,
		audit.DeleteWebhook: true,
		audit.CloseLocks:    false, audit.SetQuota: false, audit.CreateWebhook: false,
		audit.Redeliver: false,
	} {
		if put := (&audit.Record{
			At: time.Now(), Tenant: "acme", Action: action,
		}).Put(); put.Frees != want {
			t.Errorf("%s: %v", action, put.Frees)
		}
	}
}
