package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

func TestPast(t *testing.T) {
	e := &lock.Entry{
		ID: "01H", Tenant: "acme", Holder: "worker-1", TTL: time.Minute,
		EnqueuedAt: time.UnixMilli(1_700_000_000_123).UTC(), Number: 1007,
		Claims: []lock.Claim{{Name: "orders:42", Mode: lock.Exclusive}},
	}
	text := new(store.Pasts).Of(e, 7)
	if want := `{"lock":"orders:42","holder":"worker-1","ttl_ms":60000,"enqueued_ms":1700000000123,"position":7}`; string(text) != want {
		t.Errorf("it is %s, want %s", text, want)
	}
	past := store.Past{Text: text, Floor: 1000}
	if diff := cmp.Diff(e, past.Entry("acme", "01H")); diff != "" {
		t.Errorf("(-ended +told):\n%s", diff)
	}
	longest := *e
	longest.Holder = strings.Repeat("\u5de5", 200)
	longest.Claims = []lock.Claim{
		{
			Name: strings.Repeat("x", 200), Mode: lock.Semaphore, Limit: lock.MaxLimit,
			Permits: lock.MaxLimit,
		},
	}
	if text := new(store.Pasts).Of(&longest, 1<<50); len(text) == 0 || len(text) > store.MaxPast {
		t.Errorf("the largest entry of one lock is remembered with %d bytes", len(text))
	}
	if past := (store.Past{Text: store.PlaceOf(7), Floor: 1000}); past.Position() != 7 ||
		past.Entry("acme", "01H") != nil {
		t.Errorf("of a place alone %s is told", past.Text)
	}
	for _, text := range []string{
		"", "{", "null", "{}", `{"lock":"a/b"}`,
		`{"claims":[{"name":"b","mode":"shared"},{"name":"a","mode":"shared"}]}`,
	} {
		if e := (store.Past{Text: []byte(text)}).Entry("acme", "01H"); e != nil {
			t.Errorf("%q is told as %+v", text, e)
		}
		if at := (store.Past{Text: []byte(text)}).Position(); at != 0 {
			t.Errorf("%q is of %d", text, at)
		}
	}
	if text := new(store.Pasts).Of(store.Damaged(keyOf(e), 7, 9), 7); text != nil {
		t.Errorf("of what is not understood %s is told", text)
	}
}

// TestPastsOfOneTenant: ends stay in the store for minutes, and a tenant can make thousands
// a second; what they were takes several times the room of the ends themselves.
func TestPastsOfOneTenant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most, aMinute = 8 << 20, time.Minute
		var pasts store.Pasts
		end := func(tenant string) (bytes int) {
			e := &lock.Entry{
				Tenant: tenant, Holder: strings.Repeat("\u5de5", 200),
				Claims: []lock.Claim{{Name: "orders:42", Mode: lock.Exclusive}},
			}
			past := store.Past{Text: pasts.Of(e, 7)}
			if past.Position() != 7 {
				t.Fatalf("its place is not remembered: %s", past.Text)
			}
			if past.Entry(tenant, "01H") != nil {
				bytes = len(past.Text)
			}
			return bytes
		}
		for minute := range 3 {
			told := 0
			for range most/store.MaxPast + 10_000 {
				told += end("acme")
			}
			if told > most || told < most*9/10 {
				t.Errorf("minute %d: %d bytes are remembered of one tenant, want nearly %d", minute, told, most)
			}
			if end("other") == 0 {
				t.Errorf("minute %d: another tenant's end is remembered by its place alone", minute)
			}
			<-time.After(aMinute - 1)
			if end("acme") != 0 {
				t.Errorf("minute %d is over too early", minute)
			}
			<-time.After(1)
		}
	})
}
