package subscription_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// onRecord returns what is in the audit of a tenant, the oldest first, in short.
func (w *world) onRecord(t *testing.T, tenant string) (did []string, all []*audit.Record) {
	t.Helper()
	page, err := audit.NewLog(
		w.records, audit.DefaultRetention, func() time.Time { return w.now },
	).Page(t.Context(), audit.Query{Tenant: tenant, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(page.Records) - 1; i >= 0; i-- {
		r := page.Records[i]
		all = append(all, r)
		did = append(did, strings.Join(
			append([]string{r.Action, r.Object.Webhook.ID, r.Object.Locks[0]}, r.Object.Webhook.Changed...),
			" ",
		))
	}
	return did, all
}

// TestOnRecord: each change is in the audit, once, and nothing of it is secret.
func TestOnRecord(t *testing.T) {
	w := newWorld(t)
	tick := func() { w.now = w.now.Add(time.Second) }
	url, pattern, yes, no := "https://example.org/hook/s3cr3t?token=s3cr3t", "orders:*", true, false
	made, secret, err := w.Create(
		t.Context(), by(who("acme")), subscription.Change{URL: &url, Locks: &pattern},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"webhook.create " + made.ID + " orders:*"}
	for _, c := range []struct {
		change subscription.Change
		want   string
	}{
		{subscription.Change{}, ""},
		{subscription.Change{Paused: &yes}, "webhook.pause " + made.ID + " orders:*"},
		{subscription.Change{Paused: &no}, "webhook.resume " + made.ID + " orders:*"},
		{
			subscription.Change{URL: &url, Paused: &no, Locks: &pattern, Events: []string{"*"}},
			"webhook.change " + made.ID + " orders:* url events locks paused",
		},
	} {
		tick()
		must(w.Update(t.Context(), by(who("acme")), made.ID, c.change))
		if c.want != "" {
			want = append(want, c.want)
		}
	}
	tick()
	_, rotated, err := w.Rotate(t.Context(), by(who("acme")), made.ID)
	tick()
	callback := must(w.RotateCallback(t.Context(), by(who("acme"))))
	tick()
	if err := errors.Join(err, w.Delete(t.Context(), by(who("acme")), made.ID)); err != nil {
		t.Fatal(err)
	}
	want = append(
		want, "webhook.rotate "+made.ID+" orders:*", "webhook.rotate callbacks *",
		"webhook.delete "+made.ID+" orders:*",
	)
	did, all := w.onRecord(t, "acme")
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("on record (-want +got)\n%s", diff)
	}
	r := all[0]
	if r.By != by(who("acme")).By || r.Tenant != "acme" || r.Result != audit.Asked ||
		r.Object.Webhook.Receiver != "https://example.org" {
		t.Errorf("the first is %+v of %+v", r, r.Object.Webhook)
	}
	checkNoSecret(t, w, "s3cr3t", secret.Reveal(), rotated.Reveal(), callback.Reveal())
}

// checkNoSecret looks for texts in the audit as it is stored.
func checkNoSecret(t *testing.T, w *world, secrets ...string) {
	t.Helper()
	for _, kind := range []string{
		"audit-00", "audit-01", "audit-02", "audit-03", "audit-04", "audit-05", "audit-06", "audit-07",
		"audit-08", "audit-09", "audit-10", "audit-11", "audit-12", "audit-13", "audit-14", "audit-15",
	} {
		page, err := w.records.List(t.Context(), store.RecordQuery{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			for _, secret := range secrets {
				if strings.Contains(string(r.Value), secret) {
					t.Errorf("%s is stored as %s", r.ID, r.Value)
				}
			}
		}
	}
}

// TestRefusedIsNotOnRecord: what was not tried is not on record, of the own tenant or another.
func TestRefusedIsNotOnRecord(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	bad, yes := "ftp://example.org", true
	_, _, err := w.Create(t.Context(), by(who("acme")), said(bad))
	_, err2 := w.Update(t.Context(), by(who("other")), made.ID, subscription.Change{Paused: &yes})
	_, err3 := w.Update(t.Context(), by(who("acme", "a")), made.ID, subscription.Change{Paused: &yes})
	_, err4 := w.RotateCallback(t.Context(), by(who("acme", "a")))
	err5 := w.Delete(t.Context(), by(who("other")), made.ID)
	for i, err := range []error{err, err2, err3, err4, err5} {
		if err == nil {
			t.Errorf("%d was not refused", i)
		}
	}
	for tenant, want := range map[string]int{"acme": 1, "other": 0} {
		if did, _ := w.onRecord(t, tenant); len(did) != want {
			t.Errorf("of %s is on record %v", tenant, did)
		}
	}
}

// TestNothingWithoutRecord: a change that cannot be put on record is not made, and its error
// does not leave the outcome open.
func TestNothingWithoutRecord(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	w.Journal = audit.NewJournal(away{w.records}, nil, nil)
	before := stored(t, w)
	yes := true
	for name, do := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, _, err := w.Create(ctx, by(who("acme")), said(receiver))
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := w.Update(ctx, by(who("acme")), made.ID, subscription.Change{Paused: &yes})
			return err
		},
		"rotate": func(ctx context.Context) error {
			_, _, err := w.Rotate(ctx, by(who("acme")), made.ID)
			return err
		},
		"callback": func(ctx context.Context) error {
			_, err := w.RotateCallback(ctx, by(who("acme")))
			return err
		},
		"delete": func(ctx context.Context) error { return w.Delete(ctx, by(who("acme")), made.ID) },
	} {
		var e *lock.Error
		if err := do(t.Context()); !errors.As(err, &e) || e.Code != lock.StoreUnavailable ||
			e.OutcomeUnknown {
			t.Errorf("%s: %v, want that nothing was done", name, err)
		}
	}
	if after := stored(t, w); after != before {
		t.Errorf("there was %s, and now there is %s", before, after)
	}
}

// TestUnchangedIsNotOnRecord: who changes nothing fills no audit, and writes nothing.
func TestUnchangedIsNotOnRecord(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	url, yes := receiver, true
	paused := must(w.Update(t.Context(), by(who("acme")), made.ID, subscription.Change{Paused: &yes}))
	before := stored(t, w)
	for _, c := range []subscription.Change{
		{Paused: &yes}, {URL: &url}, {Paused: &yes, URL: &url, Events: []string{"*"}},
	} {
		if diff := cmp.Diff(
			paused, must(w.Update(t.Context(), by(who("acme")), made.ID, c)),
		); diff != "" {
			t.Errorf("it is another (-want +got)\n%s", diff)
		}
	}
	if after := stored(t, w); after != before {
		t.Errorf("there was %s, and now there is %s", before, after)
	}
	if did, _ := w.onRecord(t, "acme"); len(did) != 2 {
		t.Errorf("on record is %v", did)
	}
}

// TestOnRecordOnce: a change that conflicts with another, and is retried, is on record once.
func TestOnRecordOnce(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	meets := func() *subscription.Subscriptions { // a rotation, before its first write
		return w.over(&racing{w.records, func() {
			if _, _, err := w.Rotate(t.Context(), by(who("acme")), made.ID); err != nil {
				t.Error(err)
			}
		}})
	}
	yes := true
	must(meets().Update(t.Context(), by(who("acme")), made.ID, subscription.Change{Paused: &yes}))
	if err := meets().Delete(t.Context(), by(who("acme")), made.ID); err != nil {
		t.Fatal(err)
	}
	did, _ := w.onRecord(t, "acme")
	n := map[string]int{}
	for _, one := range did {
		action, _, _ := strings.Cut(one, " ")
		n[action]++
	}
	if diff := cmp.Diff(
		map[string]int{
			audit.CreateWebhook: 1, audit.RotateWebhook: 2, audit.PauseWebhook: 1, audit.DeleteWebhook: 1,
		},
		n,
	); diff != "" {
		t.Errorf("on record (-want +got)\n%s", diff)
	}
}
