package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newEntry is what an acquire with nothing in it gives.
func newEntry() entry {
	return entry{
		Name: "orders:42", State: "held", Mode: "exclusive", Holder: "worker-1",
		WaitedSeconds: ptr(0.0), TTLSeconds: ptr(30.0),
	}
}

func TestAcquireAnswersWithTheEntry(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 200)
	pairs, sixteen := manyPairs(16)
	cases := map[string]struct {
		with   []option
		change func(*entry)
	}{
		"NoBody":      {nil, func(*entry) {}},
		"EmptyObject": {[]option{body(`{}`)}, func(*entry) {}},
		"OnlySpaces":  {[]option{body(" \r\n\t"), loose}, func(*entry) {}},
		"SpacesAround": {
			[]option{body("\n {\"ttl_seconds\" : 5 }\n")}, func(e *entry) { e.TTLSeconds = ptr(5.0) },
		},
		"Chunked": {
			[]option{chunked(`{"ttl_seconds":5}`)}, func(e *entry) { e.TTLSeconds = ptr(5.0) },
		},
		"ChunkedEmpty": {[]option{chunked(``)}, func(*entry) {}},
		"NoContentType": {
			[]option{body(`{"ttl_seconds":5}`), header("Content-Type"), loose},
			func(e *entry) { e.TTLSeconds = ptr(5.0) },
		},
		"Charset": {
			[]option{body(`{"ttl_seconds":5}`), header("Content-Type", "application/json; charset=utf-8")},
			func(e *entry) { e.TTLSeconds = ptr(5.0) },
		},
		"ContentTypeInCaps": {
			[]option{body(`{}`), header("Content-Type", "Application/JSON")}, func(*entry) {},
		},
		"FormWithoutContent": {
			[]option{body(``), header("Content-Type", "application/x-www-form-urlencoded")}, func(*entry) {},
		},
		"MinTTL": {[]option{body(`{"ttl_seconds":2}`)}, func(e *entry) { e.TTLSeconds = ptr(2.0) }},
		"MaxTTL": {[]option{body(`{"ttl_seconds":3600}`)}, func(e *entry) { e.TTLSeconds = ptr(3600.0) }},
		"FractionOfTTL": {
			[]option{body(`{"ttl_seconds":2.345}`)}, func(e *entry) { e.TTLSeconds = ptr(2.345) },
		},
		"Exponent": {
			[]option{body(`{"ttl_seconds":2e1}`)}, func(e *entry) { e.TTLSeconds = ptr(20.0) },
		},
		"NoWait":         {[]option{body(`{"wait_seconds":0}`)}, func(*entry) {}},
		"FractionOfWait": {[]option{body(`{"wait_seconds":0.25}`)}, func(*entry) {}},
		"MaxWait":        {[]option{body(`{"wait_seconds":86400}`)}, func(*entry) {}},
		"Mode":           {[]option{body(`{"mode":"exclusive"}`)}, func(*entry) {}},
		"ModeShared":     {[]option{body(`{"mode":"shared"}`)}, func(e *entry) { e.Mode = "shared" }},
		"ModeSemaphore": {
			[]option{body(`{"mode":"semaphore","limit":3}`)},
			func(e *entry) { e.Mode, e.Limit, e.Permits = "semaphore", 3, 1 },
		},
		"LargestLimit": {
			[]option{body(`{"mode":"semaphore","limit":1000000}`)},
			func(e *entry) { e.Mode, e.Limit, e.Permits = "semaphore", 1_000_000, 1 },
		},
		"Permits": {
			[]option{body(`{"mode":"semaphore","limit":3,"permits":2}`)},
			func(e *entry) { e.Mode, e.Limit, e.Permits = "semaphore", 3, 2 },
		},
		"NullMode": {[]option{body(`{"mode":null,"limit":null}`)}, func(*entry) {}},
		"Holder": {
			[]option{body(`{"holder":"worker <7> 工"}`)}, func(e *entry) { e.Holder = "worker <7> 工" },
		},
		"LongHolder": {[]option{body(`{"holder":"` + long + `"}`)}, func(e *entry) { e.Holder = long }},
		"Metadata": {
			[]option{body(`{"metadata":{"job":"7","":""}}`)},
			func(e *entry) { e.Metadata = map[string]string{"job": "7", "": ""} },
		},
		"NoMetadata": {[]option{body(`{"metadata":{}}`)}, func(*entry) {}},
		"MuchMetadata": {
			[]option{body(`{"metadata":` + pairs + `}`)}, func(e *entry) { e.Metadata = sixteen },
		},
		"LargestBody": {[]option{body(padded(16 << 10))}, func(*entry) {}},
		"Everything": {
			[]option{
				body(
					`{"ttl_seconds":7.5,"wait_seconds":1.5,"mode":"exclusive","holder":"w","metadata":{"a":"b"}}`,
				),
				key("k"),
			},
			func(e *entry) {
				e.TTLSeconds, e.Holder, e.Metadata = ptr(7.5), "w", map[string]string{"a": "b"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTenant(t).post("/locks/orders:42", tc.with...)
			got, want := a.held(http.StatusCreated), newEntry()
			tc.change(&want)
			want.WaitedSeconds = a.waited(got.WaitedSeconds)
			random := cmpopts.IgnoreFields(entry{}, "ID", "Token", "Fence", "ExpiresAt", "EnqueuedAt")
			if diff := cmp.Diff(want, got, random); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			a.wantFullTTL(got, 0)
			if before := a.sent.Add(-time.Millisecond); got.EnqueuedAt.Before(before) {
				t.Errorf("enqueued_at = %v, want %v or later", got.EnqueuedAt, before)
			}
		})
	}
}

// manyPairs returns n pairs of metadata that take 2 KiB in all.
func manyPairs(n int) (string, map[string]string) {
	m, texts := map[string]string{}, make([]string, n)
	for i := range n {
		k, v := fmt.Sprintf("k%02d", i), strings.Repeat("v", 2048/n-3)
		m[k], texts[i] = v, fmt.Sprintf("%q:%q", k, v)
	}
	return "{" + strings.Join(texts, ",") + "}", m
}

// padded is an empty object of n bytes.
func padded(n int) string { return "{" + strings.Repeat(" ", n-2) + "}" }

// TestTryOfAHeldLockIsRefused: an acquire that does not queue is refused with the holders of the
// lock.
func TestTryOfAHeldLockIsRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string][]option{
		"NoBody": nil, "NoWait": {body(`{"wait_seconds":0}`)}, "WithKey": {key("k")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			a := c.post("/locks/orders:42", body(`{"holder":"first","metadata":{"job":"7"}}`))
			first := a.held(http.StatusCreated)
			checkInTheWay(
				t, a, first, c.named("worker-2").post("/locks/orders:42", o...).refused("lock_held"), 0,
			)
			if v := c.look("orders:42"); *v.Waiting != 0 {
				t.Errorf("%d wait after a refusal", *v.Waiting)
			}
			c.release(first)
			c.acquire("orders:42", o...) // a refusal does not use up the key
		})
	}
}

func checkInTheWay(t *testing.T, granted *answer, first entry, r refusal, waiters int) {
	t.Helper()
	if len(r.Holders) != 1 || *r.Waiting != waiters {
		t.Fatalf("refusal = %+v, want one holder and %d waiters", r, waiters)
	}
	h := r.Holders[0]
	want := holder{
		Holder: first.Holder, Fence: *first.Fence, Mode: "exclusive", Metadata: first.Metadata,
	}
	if diff := cmp.Diff(want, h, cmpopts.IgnoreFields(holder{}, "Since", "ExpiresAt")); diff != "" {
		t.Errorf("holder (-want +got)\n%s", diff)
	}
	if h.Since.Before(granted.sent.Add(-time.Millisecond)) ||
		h.Since.After(granted.received.Add(time.Second)) {
		t.Errorf("since = %v, acquired at %v", h.Since, granted.received)
	}
	if left := h.ExpiresAt.Sub(granted.sent); left < 28*time.Second || left > 32*time.Second {
		t.Errorf("expires_at is %v after the acquire, want about the TTL of 30 s", left)
	}
}
