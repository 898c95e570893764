package subscription_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// replica is a directory that runs, on a connection that can be cut.
type replica struct {
	*subscription.Directory
	cable *memory.Cable
	log   *bytes.Buffer
}

// run has a test in virtual time, with a world and a replica that follows it.
func run(t *testing.T, test func(t *testing.T, w *world, r *replica)) {
	t.Helper()
	runCut(t, "", test)
}

// runCut is run with a directory that begins cut off.
func runCut(t *testing.T, how memory.Cut, test func(t *testing.T, w *world, r *replica)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		client := server.Connect(nil)
		defer client.Close()
		w := &world{records: client.Records(), now: time.Now()}
		w.Subscriptions = w.over(w.records)
		test(t, w, follow(t, server, how))
	})
}

func follow(t *testing.T, server *memory.Server, how memory.Cut) *replica {
	r := &replica{cable: memory.NewCable(), log: new(bytes.Buffer)}
	r.cable.Cut(how)
	client := server.Connect(r.cable)
	r.Directory = subscription.NewDirectory(
		client.Records(), subscription.NewKeys([]byte(tokenKey)),
		slog.New(slog.NewTextHandler(r.log, nil)),
	)
	if all, ok, _ := r.Current(); ok || all != nil {
		t.Errorf("before it runs it has %v", all)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		client.Close()
	})
	return r
}

// settle gives the directory the time in which it knows of everything.
func settle() { <-time.After(time.Second) }

func (r *replica) ids() []string {
	var ids []string
	all, _, _ := r.Current()
	for _, s := range all {
		ids = append(ids, s.Tenant+"/"+s.ID)
	}
	return ids
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestDirectory follows what is made, changed and deleted.
func TestDirectory(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *replica) {
		settle()
		all, ok, changed := r.Current()
		if !ok || len(all) != 0 || isClosed(changed) {
			t.Fatalf("an empty store is %v, %t", all, ok)
		}
		var want []string
		for i := range 300 { // more than a page
			s, _ := w.make(t, fmt.Sprintf("tenant-%d", i%4))
			want = append(want, s.Tenant+"/"+s.ID)
		}
		slices.Sort(want)
		settle()
		if diff := cmp.Diff(want, r.ids()); !isClosed(changed) || diff != "" {
			t.Fatalf("told %t (-want +got):\n%s", isClosed(changed), diff)
		}
		one, secret := w.make(t, "zeta")
		settle()
		if diff := cmp.Diff([]string{secret.Reveal()}, revealed(r.Secrets(one, time.Now()))); diff != "" {
			t.Errorf("secrets (-want +got):\n%s", diff)
		}
		before, _, changed := r.Current()
		<-time.After(time.Hour)
		if after, _, _ := r.Current(); isClosed(changed) || &after[0] != &before[0] {
			t.Error("nothing happened, and something changed")
		}
		yes := true
		if _, err := w.Update(
			t.Context(), by(who(before[0].Tenant)), before[0].ID, subscription.Change{Paused: &yes},
		); err != nil {
			t.Fatal(err)
		}
		settle()
		after, _, later := r.Current()
		if !isClosed(changed) || before[0].Paused || !after[0].Paused ||
			after[0].From != before[0].From || after[1] != before[1] {
			t.Errorf("after a change %+v has become %+v", before[0], after[0])
		}
		if err := w.Delete(t.Context(), by(who(after[1].Tenant)), after[1].ID); err != nil {
			t.Fatal(err)
		}
		settle()
		if got := r.ids(); !isClosed(later) || len(got) != 300 || slices.Contains(got, want[1]) {
			t.Errorf("after a deletion %d are there", len(got))
		}
	})
}

// TestDirectoryCutOff: what was read last counts until it can be read again.
func TestDirectoryCutOff(t *testing.T) {
	for _, how := range []memory.Cut{memory.Silent, memory.Deaf, memory.Broken} {
		t.Run(string(how), func(t *testing.T) {
			run(t, func(t *testing.T, w *world, r *replica) {
				w.make(t, "acme")
				settle()
				r.cable.Cut(how)
				second, _ := w.make(t, "beta")
				<-time.After(time.Hour)
				if all, ok, _ := r.Current(); !ok || len(all) != 1 {
					t.Errorf("cut off it has %v, %t", all, ok)
				}
				r.cable.Cut("")
				<-time.After(time.Minute)
				if ids := r.ids(); len(ids) != 2 || ids[1] != "beta/"+second.ID {
					t.Errorf("again it has %v", ids)
				}
			})
		})
	}
}

// TestDirectoryIsNotSureAtFirst: it says nothing before everything was read.
func TestDirectoryIsNotSureAtFirst(t *testing.T) {
	runCut(t, memory.Broken, func(t *testing.T, _ *world, r *replica) {
		<-time.After(time.Minute)
		if all, ok, _ := r.Current(); ok {
			t.Errorf("it is sure of %v", all)
		}
		_, _, changed := r.Current()
		r.cable.Cut("")
		<-time.After(time.Minute)
		if _, ok, _ := r.Current(); !ok || !isClosed(changed) {
			t.Error("it is not sure after a minute")
		}
	})
}

// TestDirectoryPassesOver what cannot be read, says so once, and shows nothing of it.
func TestDirectoryPassesOver(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *replica) {
		good, _ := w.make(t, "acme")
		k := store.RecordKey{Kind: subscription.Kind, Tenant: "acme", ID: "damaged"}
		version, err := w.records.Put(
			t.Context(), store.RecordPut{RecordKey: k, Value: []byte(`{"url":hunter2}`)},
		)
		if err != nil {
			t.Fatal(err)
		}
		other := store.RecordKey{Kind: subscription.CallbackKind, Tenant: "acme", ID: "current"}
		if _, err := w.records.Put(
			t.Context(), store.RecordPut{RecordKey: other, Value: []byte("hunter2")},
		); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		log := r.log.String()
		if ids := r.ids(); len(ids) != 1 || ids[0] != "acme/"+good.ID {
			t.Errorf("it has %v", ids)
		}
		if strings.Count(log, "ERROR") != 2 || strings.Contains(log, "hunter2") ||
			!strings.Contains(log, "damaged") {
			t.Errorf("the log is\n%s", log)
		}
		if secrets := r.CallbackSecrets("acme", time.Now()); secrets != nil {
			t.Errorf("%d callback secrets", len(secrets))
		}
		if err := w.records.Delete(t.Context(), k, version); err != nil {
			t.Fatal(err)
		}
		settle()
		if ids := r.ids(); len(ids) != 1 {
			t.Errorf("afterwards it has %v", ids)
		}
	})
}

// TestDirectoryHasCallbackSecrets: each tenant's own, the replaced ones for a day, and none
// before there is one.
func TestDirectoryHasCallbackSecrets(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *replica) {
		var made []string
		rotate := func(tenant string) {
			w.now = time.Now()
			secret, err := w.RotateCallback(t.Context(), by(who(tenant)))
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, secret.Reveal())
			settle()
		}
		settle()
		_, _, changed := r.Current()
		rotate("acme")
		if !isClosed(changed) {
			t.Error("a new callback secret is not told")
		}
		<-time.After(time.Hour)
		rotate("acme")
		rotate("beta")
		if diff := cmp.Diff(
			[]string{made[1], made[0]}, revealed(r.CallbackSecrets("acme", time.Now())),
		); diff != "" {
			t.Errorf("after a rotation (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(made[2:], revealed(r.CallbackSecrets("beta", time.Now()))); diff != "" {
			t.Errorf("of another tenant (-want +got):\n%s", diff)
		}
		<-time.After(subscription.Overlap)
		if diff := cmp.Diff(made[1:2], revealed(r.CallbackSecrets("acme", time.Now()))); diff != "" {
			t.Errorf("a day later (-want +got):\n%s", diff)
		}
		if none := r.CallbackSecrets("gamma", time.Now()); none != nil {
			t.Errorf("a tenant without one has %d", len(none))
		}
	})
}

// counted counts how often everything is listed.
type counted struct {
	store.RecordStore
	lists atomic.Int64
}

func (c *counted) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if q.Kind == subscription.Kind {
		c.lists.Add(1)
	}
	return c.RecordStore.List(ctx, q)
}

// TestDirectoryIsNotKeptBusy: a tenant that writes all the time has it read ten times a
// second, and one that writes nothing twice a minute.
func TestDirectoryIsNotKeptBusy(t *testing.T) {
	run(t, func(t *testing.T, w *world, _ *replica) {
		c := &counted{RecordStore: w.records}
		d := subscription.NewDirectory(
			c, subscription.NewKeys([]byte(tokenKey)), slog.New(slog.DiscardHandler),
		)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		made, _ := w.make(t, "acme")
		for i := range 1000 { // ten seconds
			many := by(who("acme"))
			many.By.Tenant = fmt.Sprint(i % 10) // one alone may not do so much
			if _, _, err := w.Rotate(t.Context(), many, made.ID); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Millisecond)
		}
		if n := c.lists.Load(); n < 50 || n > 120 {
			t.Errorf("listed %d times in ten seconds of writes", n)
		}
		settle()
		c.lists.Store(0)
		<-time.After(10 * time.Minute)
		if n := c.lists.Load(); n < 15 || n > 25 {
			t.Errorf("listed %d times in ten quiet minutes", n)
		}
		stop()
		running.Wait()
	})
}

// TestFullServer: a server takes so many subscriptions and callback secrets of all tenants, and no
// more. Those that are there can be rotated.
func TestFullServer(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *replica) {
		for i := range subscription.MaxInAll {
			for kind, id := range map[string]string{
				subscription.Kind: "a", subscription.CallbackKind: "current",
			} {
				k := store.RecordKey{Kind: kind, Tenant: fmt.Sprint("t", i), ID: id}
				if _, err := w.records.Put(t.Context(), store.RecordPut{
					RecordKey: k, Value: []byte(`{"url":"` + receiver + `","locks":"*","generation":1}`),
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		settle()
		s := subscription.New(
			subscription.Config{Records: w.records, Policy: w.Policy, Keys: w.Keys, Directory: r.Directory},
		)
		_, _, err := s.Create(t.Context(), by(who("acme")), said(receiver))
		wantCode(t, "one more", err, lock.QuotaExceeded, "")
		_, err = s.RotateCallback(t.Context(), by(who("acme")))
		wantCode(t, "one more callback secret", err, lock.QuotaExceeded, "")
		if _, err = s.RotateCallback(t.Context(), by(who("t1"))); err != nil {
			t.Errorf("one that is there: %v", err)
		}
	})
}

// TestDirectoryIsAsked whether there is room, and whether there is a callback secret: the
// store is not asked again about what the replica knows.
func TestDirectoryIsAsked(t *testing.T) {
	run(t, func(t *testing.T, w *world, r *replica) {
		if _, err := w.RotateCallback(t.Context(), by(who("acme"))); err != nil {
			t.Fatal(err)
		}
		settle()
		s := subscription.New(subscription.Config{
			Records: away{w.records}, Policy: w.Policy, Keys: w.Keys, Directory: r.Directory,
		})
		if id, err := s.CallbackSecret(t.Context(), "acme"); err != nil || !lock.ValidName(id) {
			t.Errorf("the callback secret is %q, %v", id, err)
		}
		_, err := s.CallbackSecret(t.Context(), "beta")
		wantCode(t, "one that is not known", err, lock.StoreUnavailable, "")
	})
}
