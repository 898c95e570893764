package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func TestPast(t *testing.T) {
	e := &lock.Entry{
		ID: "01H", Tenant: "acme", Holder: "worker-1", TTL: time.Minute, EnqueuedAt: time.UnixMilli(1_700_000_000_123).UTC(), Number: 1007,
		Claims: []lock.Claim{{Name: "orders:42", Mode: lock.Exclusive}},
	}
	text := store.PastOf(e, 7)
	if want := `{"lock":"orders:42","holder":"worker-1","ttl_ms":60000,"enqueued_ms":1700000000123,"position":7}`; string(text) != want {
		t.Errorf("it is %s, want %s", text, want)
	}
	past := store.Past{Text: text, Floor: 1000}
	if diff := cmp.Diff(e, past.Entry("acme", "01H")); diff != "" {
		t.Errorf("(-ended +told):\n%s", diff)
	}
	longest := *e
	longest.Holder = strings.Repeat("\u5de5", 200)
	longest.Claims = []lock.Claim{{Name: strings.Repeat("x", 200), Mode: lock.Semaphore, Limit: lock.MaxLimit}}
	if text := store.PastOf(&longest, 1<<50); len(text) == 0 || len(text) > store.MaxPast {
		t.Errorf("the largest entry of one lock is remembered with %d bytes", len(text))
	}
	if past := (store.Past{Text: store.PlaceOf(7), Floor: 1000}); past.Position() != 7 || past.Entry("acme", "01H") != nil {
		t.Errorf("of a place alone %s is told", past.Text)
	}
	for _, text := range []string{"", "{", "null", "{}", `{"lock":"a/b"}`, `{"claims":[{"name":"b","mode":"shared"},{"name":"a","mode":"shared"}]}`} {
		if e := (store.Past{Text: []byte(text)}).Entry("acme", "01H"); e != nil {
			t.Errorf("%q is told as %+v", text, e)
		}
		if at := (store.Past{Text: []byte(text)}).Position(); at != 0 {
			t.Errorf("%q is of %d", text, at)
		}
	}
	if text := store.PastOf(store.Newer(keyOf(e), 7, 9), 7); text != nil {
		t.Errorf("of what is not understood %s is told", text)
	}
}
