package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// stored returns the text of all records.
func stored(t testing.TB, w *world) string {
	t.Helper()
	var all strings.Builder
	for _, kind := range []string{subscription.Kind, subscription.CallbackKind} {
		page, err := w.records.List(t.Context(), store.RecordQuery{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			fmt.Fprintf(&all, "%s %s %s %s\n", r.Kind, r.Tenant, r.ID, r.Value)
		}
	}
	return all.String()
}

// wantCode checks the code of an error, and the field that it names.
func wantCode(t testing.TB, what string, err error, code lock.Code, field string) {
	t.Helper()
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Errorf("%s: %v, want %s of %q", what, err, code, field)
	}
}

// TestCreate: what is made is what is found, at every replica.
func TestCreate(t *testing.T) {
	w := newWorld(t)
	pattern := "orders:eu-*"
	change := said(receiver)
	change.Events, change.Locks = []string{
		"lock.acquired", subscription.Missed, "lock.released", "lock.acquired",
	}, &pattern
	made, secret, err := w.Create(t.Context(), by(who("acme", "invoices:*", "orders:*")), change)
	if err != nil {
		t.Fatal(err)
	}
	want := &subscription.Subscription{
		ID: made.ID, Tenant: "acme", URL: receiver, Locks: pattern, Within: []string{"orders:*"},
		Created: w.now, By: "worker-1",
		Events: []lock.EventKind{lock.EventAcquired, lock.EventReleased}, From: made.Version,
		Version:  made.Version,
		Rotation: subscription.Rotation{Generation: 1, Salts: made.Salts},
	}
	found, err := w.Get(t.Context(), who("acme"), made.ID)
	if diff := cmp.Diff(want, made) + cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !lock.ValidName(made.ID) || made.From == 0 || secret.IsZero() || len(made.Salts) != 1 {
		t.Errorf("made %+v", made)
	}
	all, err := w.List(t.Context(), who("acme"))
	if diff := cmp.Diff([]*subscription.Subscription{want}, all); err != nil || diff != "" {
		t.Errorf("the list, %v (-want +got):\n%s", err, diff)
	}
}

// TestDefaults: all events of all locks, and none of them but those that are missed.
func TestDefaults(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		events []string
		want   []lock.EventKind
	}{
		{nil, nil},
		{[]string{subscription.AllEvents}, nil},
		{[]string{"lock.acquired", subscription.AllEvents}, nil},
		{[]string{subscription.Missed}, []lock.EventKind{}},
	} {
		change := said(receiver)
		change.Events = c.events
		made, _, err := w.Create(t.Context(), by(who("acme")), change)
		if err != nil {
			t.Fatal(err)
		}
		found := must(w.Get(t.Context(), who("acme"), made.ID))
		if found.Locks != "*" || found.Within != nil || cmp.Diff(c.want, found.Events) != "" {
			t.Errorf("%v makes %+v", c.events, found)
		}
	}
}

// TestRefused: subscriptions that no caller may make.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	limited := who("acme", "orders:*", "a*b")
	for name, c := range map[string]struct {
		who    *auth.Principal
		url    string
		events []string
		locks  string
		field  string
	}{
		"no URL":                 {url: "example.org", field: "url"},
		"wrong scheme":           {url: "ftp://example.org/", field: "url"},
		"http":                   {url: "http://example.org/", field: "url"},
		"credentials":            {url: "https://me:secret@example.org/", field: "url"},
		"forbidden address":      {url: "https://127.0.0.1/", field: "url"},
		"another port":           {url: "https://example.org:8443/", field: "url"},
		"unknown event":          {events: []string{"lock.acquired", "lock.eaten"}, field: "events"},
		"no event":               {events: []string{}, field: "events"},
		"all and an unknown one": {events: []string{"*", "lock.eaten"}, field: "events"},
		"a space":                {locks: "orders: *", field: "locks"},
		"a slash":                {locks: "orders/*", field: "locks"},
		"a comma":                {locks: "a,b", field: "locks"},
		"long":                   {locks: strings.Repeat("a", 257), field: "locks"},
		"many stars":             {locks: strings.Repeat("a*", 17), field: "locks"},
		"all, limited":           {who: limited, locks: "*", field: "locks"},
		"all by default":         {who: limited, field: "locks"},
		"others":                 {who: limited, locks: "invoices:*", field: "locks"},
		"more":                   {who: limited, locks: "orders*", field: "locks"},
		"in the middle":          {who: limited, locks: "a*b*", field: "locks"},
		"in front":               {who: limited, locks: "*orders:1", field: "locks"},
		"limited to nothing": {
			who: &auth.Principal{Tenant: "acme", Locks: []auth.Pattern{}}, locks: "a", field: "locks",
		},
		"two stars":              {who: limited, locks: "orders:*b*", field: "locks"},
		"exactly what it may do": {who: limited, locks: "a*b", field: ""},
	} {
		change := said(receiver)
		if c.url != "" {
			change = said(c.url)
		}
		if change.Events = c.events; c.locks != "" {
			change.Locks = &c.locks
		}
		if c.who == nil {
			c.who = who("acme")
		}
		if _, _, err := w.Create(t.Context(), by(c.who), change); c.field != "" {
			wantCode(t, name, err, lock.InvalidRequest, c.field)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := w.Create(t.Context(), by(who("acme")), subscription.Change{})
	wantCode(t, "nothing", err, lock.InvalidRequest, "url")
	if all := must(w.List(t.Context(), who("acme"))); len(all) != 1 {
		t.Errorf("%d were made, want 1", len(all))
	}
}

// TestUpdate changes one thing after the other.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	no, yes, url, pattern := false, true, "https://example.com/", "orders:*"
	want := *made
	for _, step := range []struct {
		change subscription.Change
		then   func()
	}{
		{subscription.Change{}, func() {}},
		{subscription.Change{Paused: &yes}, func() { want.Paused = true }},
		{
			subscription.Change{Events: []string{"lock.expired"}},
			func() { want.Events = []lock.EventKind{lock.EventExpired} },
		},
		{subscription.Change{Locks: &pattern}, func() { want.Locks = pattern }},
		{subscription.Change{URL: &url}, func() { want.URL = url }},
		{subscription.Change{Paused: &no}, func() { want.Paused, want.Enabled = false, 1 }},
		{
			subscription.Change{Paused: &no, Events: []string{"*"}},
			func() { want.Enabled, want.Events = 2, nil },
		},
	} {
		step.then()
		changed, err := w.Update(t.Context(), by(who("acme")), made.ID, step.change)
		if err != nil {
			t.Fatal(err)
		}
		if changed.Version != want.Version {
			want.Earlier, want.Version = append(want.Earlier, want.Version), changed.Version
		}
		found := must(w.Get(t.Context(), who("acme"), made.ID))
		if diff := cmp.Diff(&want, changed) + cmp.Diff(&want, found); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", step.change, diff)
		}
	}
	bad := "http://10.0.0.1/"
	_, err := w.Update(
		t.Context(), by(who("acme")), made.ID, subscription.Change{URL: &bad, Paused: &yes},
	)
	wantCode(t, "a bad URL", err, lock.InvalidRequest, "url")
	if found := must(w.Get(t.Context(), who("acme"), made.ID)); found.Paused || found.URL != url {
		t.Errorf("a refused change left %+v", found)
	}
}

// calls are all that can be asked about one subscription.
func calls(t testing.TB, w *world, id string) map[string]func(*auth.Principal) error {
	yes := true
	return map[string]func(*auth.Principal) error{
		"get": func(p *auth.Principal) error { _, err := w.Get(t.Context(), p, id); return err },
		"change": func(p *auth.Principal) error {
			_, err := w.Update(t.Context(), by(p), id, subscription.Change{Paused: &yes})
			return err
		},
		"rotate": func(p *auth.Principal) error {
			_, _, err := w.Rotate(t.Context(), by(p), id)
			return err
		},
		"delete": func(p *auth.Principal) error { return w.Delete(t.Context(), by(p), id) },
	}
}

// TestOthers: another tenant has no such subscription, and a bearer token that is limited
// to other names nothing to do with it.
func TestOthers(t *testing.T) {
	w := newWorld(t)
	pattern := "orders:*"
	change := said(receiver)
	change.Locks = &pattern
	made, _, err := w.Create(t.Context(), by(who("acme")), change)
	if err != nil {
		t.Fatal(err)
	}
	before := stored(t, w)
	for name, call := range calls(t, w, made.ID) {
		wantCode(t, name, call(who("other")), lock.NotFound, "")
		wantCode(t, name, call(who("acme", "orders:eu-*", "invoices:*")), lock.Forbidden, "")
	}
	for name, call := range calls(t, w, "a/b") {
		wantCode(t, name+" of no id", call(who("acme")), lock.NotFound, "")
	}
	if after := stored(t, w); after != before {
		t.Errorf("it has changed to %s", after)
	}
	for _, nobody := range []*auth.Principal{who("other"), who("acme", "orders:eu-*")} {
		if all, err := w.List(t.Context(), nobody); err != nil || len(all) != 0 {
			t.Errorf("%+v sees %v, %v", nobody, all, err)
		}
	}
	allowed := who("acme", "o*")
	for _, name := range []string{"get", "change", "rotate", "delete"} {
		if err := calls(t, w, made.ID)[name](allowed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantCode(t, "deleted", w.Delete(t.Context(), by(who("acme")), made.ID), lock.NotFound, "")
}

// TestLimitedChange: a limited caller may not make a subscription select more than its limit, nor
// redirect what others may see.
func TestLimitedChange(t *testing.T) {
	w := newWorld(t)
	limited, pattern, all, url := who("acme", "orders:*"), "orders:1*", "*", "https://example.com/"
	change := said(receiver)
	change.Locks = &pattern
	made, _, err := w.Create(t.Context(), by(limited), change)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Update(t.Context(), by(limited), made.ID, subscription.Change{Locks: &all})
	wantCode(t, "all", err, lock.InvalidRequest, "locks")
	wide, _ := w.make(t, "acme")
	_, err = w.Update(t.Context(), by(limited), wide.ID, subscription.Change{URL: &url})
	wantCode(t, "the URL of all", err, lock.Forbidden, "")
	widened, err := w.Update(t.Context(), by(who("acme")), made.ID, subscription.Change{Locks: &all})
	if err != nil || widened.Within != nil {
		t.Errorf("widened to %+v, %v", widened, err)
	}
}

// TestLimits: a tenant has so many and no more, however many it asks for at once, and its
// number does not count for another tenant.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	made, refused := 0, 0
	for range quota.Standard()[quota.Webhooks] + 40 {
		all.Go(func() {
			_, _, err := w.Create(t.Context(), by(who("acme")), said(receiver))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case errors.Is(err, lock.QuotaExceeded):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	found := must(w.List(t.Context(), who("acme")))
	if made != quota.Standard()[quota.Webhooks] || refused != 40 || len(found) != made {
		t.Errorf("%d made, %d refused, %d there", made, refused, len(found))
	}
	w.make(t, "other")
	if err := w.Delete(t.Context(), by(who("acme")), found[0].ID); err != nil {
		t.Fatal(err)
	}
	w.make(t, "acme")
}

// leaving is a store whose client is gone when something was written.
type leaving struct {
	store.RecordStore
	leave func()
}

func (l leaving) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	defer l.leave()
	return l.RecordStore.Put(ctx, p)
}

// TestLimitOfWhoGoesAway: a client that makes many at once and disconnects before the answer stays
// within the limit too.
func TestLimitOfWhoGoesAway(t *testing.T) {
	w := newWorld(t)
	limits := *quota.Standard()
	limits[quota.Webhooks] = 1
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	s := w.over(leaving{&racing{w.records, func() { w.make(t, "acme") }}, leave})
	s.Limits = func(string) *quota.Limits { return &limits }
	_, _, err := s.Create(ctx, by(who("acme")), said(receiver))
	if n := len(must(w.List(t.Context(), who("acme")))); n != 1 ||
		!errors.Is(err, lock.QuotaExceeded) {
		t.Errorf("%d are there: %v", n, err)
	}
}

// TestDamagedCounts: what cannot be read takes a place too, also if it came while another was made.
func TestDamagedCounts(t *testing.T) {
	w := newWorld(t)
	limits := *quota.Standard()
	limits[quota.Webhooks] = 1
	s := w.over(&racing{w.records, func() {
		k := store.RecordKey{Kind: subscription.Kind, Tenant: "acme", ID: "damaged"}
		if _, err := w.records.Put(
			t.Context(), store.RecordPut{RecordKey: k, Value: []byte("{}")},
		); err != nil {
			t.Error(err)
		}
	}})
	s.Limits = func(string) *quota.Limits { return &limits }
	_, _, err := s.Create(t.Context(), by(who("acme")), said(receiver))
	if n := len(must(w.List(t.Context(), who("acme")))); n != 0 ||
		!errors.Is(err, lock.QuotaExceeded) {
		t.Errorf("%d are there: %v", n, err)
	}
}

// TestChangesAtOnce: two who change different things do not undo each other's.
func TestChangesAtOnce(t *testing.T) {
	w := newWorld(t)
	made, _ := w.make(t, "acme")
	racing := &racing{RecordStore: w.records}
	racing.before = func() {
		if _, _, err := w.Rotate(t.Context(), by(who("acme")), made.ID); err != nil {
			t.Error(err)
		}
	}
	yes := true
	changed, err := w.over(racing).Update(
		t.Context(), by(who("acme")), made.ID, subscription.Change{Paused: &yes},
	)
	if err != nil || !changed.Paused || changed.Generation != 2 || changed.From != made.From {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	racing.before = func() {
		if err := w.Delete(t.Context(), by(who("acme")), made.ID); err != nil {
			t.Error(err)
		}
	}
	_, err = w.over(racing).Update(
		t.Context(), by(who("acme")), made.ID, subscription.Change{Paused: new(bool)},
	)
	wantCode(t, "deleted meanwhile", err, lock.NotFound, "")
}

// racing has something happen before its next write.
type racing struct {
	store.RecordStore
	before func()
}

func (r *racing) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	r.happen()
	return r.RecordStore.Put(ctx, p)
}

func (r *racing) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	r.happen()
	return r.RecordStore.Delete(ctx, k, version)
}

func (r *racing) happen() {
	if before := r.before; before != nil {
		r.before = nil
		before()
	}
}

// away is a store that does not answer.
type away struct{ store.RecordStore }

func (away) Put(context.Context, store.RecordPut) (uint64, error) {
	return 0, &lock.Error{Code: lock.StoreUnavailable, OutcomeUnknown: true}
}

func (away) Get(context.Context, store.RecordKey) (store.Record, error) {
	return store.Record{}, &lock.Error{Code: lock.StoreUnavailable}
}

// TestStoreAway: it is said, and whether something may have happened.
func TestStoreAway(t *testing.T) {
	w := newWorld(t)
	s := w.over(away{w.records})
	_, _, err := s.Create(t.Context(), by(who("acme")), said(receiver))
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.StoreUnavailable || !e.OutcomeUnknown {
		t.Errorf("create: %v", err)
	}
	_, err = s.Get(t.Context(), who("acme"), "a")
	wantCode(t, "get", err, lock.StoreUnavailable, "")
	wantCode(t, "delete", s.Delete(t.Context(), by(who("acme")), "a"), lock.StoreUnavailable, "")
	_, err = s.RotateCallback(t.Context(), by(who("acme")))
	wantCode(t, "rotate", err, lock.StoreUnavailable, "")
	_, err = s.CallbackSecret(t.Context(), "acme")
	wantCode(t, "callback secret", err, lock.StoreUnavailable, "")
}

// TestDamaged: what cannot be read is no subscription, and can be deleted.
func TestDamaged(t *testing.T) {
	w := newWorld(t)
	good, _ := w.make(t, "acme")
	for i, value := range []string{
		"", "null", `{"url":1}`, `{"url":"` + receiver + `","locks":"*"}`,
		`{"url":"` + receiver + `","locks":"","generation":1}`,
	} {
		k := store.RecordKey{Kind: subscription.Kind, Tenant: "acme", ID: fmt.Sprint("damaged", i)}
		if _, err := w.records.Put(
			t.Context(), store.RecordPut{RecordKey: k, Value: []byte(value)},
		); err != nil {
			t.Fatal(err)
		}
		_, err := w.Get(t.Context(), who("acme"), k.ID)
		wantCode(t, value, err, lock.NotFound, "")
		wantCode(t, value, w.Delete(t.Context(), by(who("acme", "*")), k.ID), lock.Forbidden, "")
		if all := must(w.List(t.Context(), who("acme"))); len(all) != 1 || all[0].ID != good.ID {
			t.Errorf("%s: the list is %v", value, all)
		}
		if err := w.Delete(t.Context(), by(who("acme")), k.ID); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestCallbackSecret: there is one when it was made, for its tenant, and others after it.
func TestCallbackSecret(t *testing.T) {
	w := newWorld(t)
	_, err := w.Callback(t.Context(), "acme", receiver)
	wantCode(t, "before", err, lock.NoCallbackSecret, "")
	_, err = w.Callback(t.Context(), "acme", "https://127.0.0.1/")
	wantCode(t, "a bad URL", err, lock.InvalidRequest, "callback_url")
	_, err = w.RotateCallback(t.Context(), by(who("acme", "*")))
	wantCode(t, "limited", err, lock.Forbidden, "")
	var secrets []string
	for range 3 {
		w.now = w.now.Add(time.Minute)
		secret, err := w.RotateCallback(t.Context(), by(who("acme")))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret.Reveal())
		callback, err := w.Callback(t.Context(), "acme", receiver)
		if err != nil || *callback != (lock.Callback{URL: receiver, Secret: "current"}) ||
			callback.Check() != nil {
			t.Errorf("callback %v, %v", callback, err)
		}
	}
	if secrets[0] == secrets[1] || secrets[1] == secrets[2] || secrets[0] == secrets[2] {
		t.Errorf("the secrets are %v", secrets)
	}
	_, err = w.CallbackSecret(t.Context(), "other")
	wantCode(t, "another tenant's", err, lock.NoCallbackSecret, "")
}
