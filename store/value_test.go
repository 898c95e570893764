package store_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func keyOf(e *lock.Entry) store.Key {
	return store.Key{Tenant: e.Tenant, Lock: e.Home(), ID: e.ID}
}

// TestRoundTrip: what is written is what is read, in every lock of a set.
func TestRoundTrip(t *testing.T) {
	enqueued := time.UnixMilli(1_700_000_000_123).UTC()
	plain := lock.Entry{
		ID: "01H", Tenant: "acme", Holder: "worker-1", Named: true, Subject: "s <1>", TTL: lock.MaxTTL,
		EnqueuedAt: enqueued, Number: 7, Handle: 9,
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	full := plain
	full.Named, full.Metadata, full.Request = true, map[string]string{"job": "7"}, "request"
	full.TTL, full.WaitUntil = time.Millisecond, enqueued.Add(time.Minute)
	semaphore, set, largest := full, full, plain
	semaphore.Claims = []lock.Claim{
		{Name: "a", Mode: lock.Semaphore, Limit: lock.MaxLimit, Permits: lock.MaxLimit},
	}
	set.Set, set.Claims = true, []lock.Claim{
		{Name: "a", Mode: lock.Shared},
		{Name: "b", Mode: lock.Semaphore, Limit: 1, Permits: 1},
		{Name: "c", Mode: lock.Semaphore, Limit: 9, Permits: 4},
	}
	largest.Set, largest.Claims = true, nil
	for i := range lock.MaxSetSize {
		largest.Claims = append(
			largest.Claims, lock.Claim{Name: fmt.Sprintf("lock-%02d", i), Mode: lock.Exclusive},
		)
	}
	traced, kept, called := full, set, full
	traced.Trace, kept.Async, called.Async = aTrace, true, true
	kept.OnlyNewest = true
	called.Callback = &lock.Callback{URL: "https://example.org/<told>", Secret: "callback-1"}
	for _, e := range []*lock.Entry{
		&plain, &full, &semaphore, &set, &largest, &traced, &kept, &called,
	} {
		value := store.ValueOf(e)
		value.Handle = e.Handle
		for _, c := range e.Claims {
			key := store.Key{Tenant: e.Tenant, Lock: c.Name, ID: e.ID}
			k, err := store.ParseValue(key, store.Encode(value))
			if err != nil {
				t.Errorf("%s of %+v: %v", c.Name, e, err)
				continue
			}
			if diff := cmp.Diff(e, k.Entry(key, e.Number)); diff != "" {
				t.Errorf("%s (-written +read):\n%s", c.Name, diff)
			}
		}
	}
}

// TestRoundTripOfAPool: an entry that asks for any of its locks is read as it was written, before
// and after it is narrowed, and at its home alone.
func TestRoundTripOfAPool(t *testing.T) {
	choosing := &lock.Entry{
		ID: "01H", Tenant: "acme", Holder: "w", TTL: time.Minute, EnqueuedAt: time.UnixMilli(7).UTC(),
		Set: true, Any: 1, Order: []int{1, 0}, Number: 7,
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}, {Name: "b", Mode: lock.Shared}},
	}
	all := *choosing
	all.Any, all.Order = 2, nil
	for _, e := range []*lock.Entry{choosing, choosing.Narrowed(choosing.Claims[1:]), &all} {
		text := store.Encode(store.ValueOf(e))
		v, err := store.ParseValue(keyOf(e), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(e, v.Entry(keyOf(e), e.Number)); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
		if _, err := store.ParseValue(store.Key{Tenant: "acme", Lock: "b", ID: "01H"}, text); err == nil {
			t.Errorf("%s is read at one of its locks", text)
		}
	}
}

// TestDamage: the store rejects what no replica can have written, whatever a person made of the
// JSON.
func TestDamage(t *testing.T) {
	set := func(claims string) string { return `"ttl_ms":30000,"claims":[` + claims + `]` }
	kept := func(fields string) string { return `"ttl_ms":30000,"mode":"exclusive",` + fields }
	many := `{"name":"a","mode":"shared"}`
	for i := range lock.MaxSetSize {
		many += fmt.Sprintf(`,{"name":"b%02d","mode":"shared"}`, i)
	}
	for name, c := range map[string]struct{ fields, says string }{
		"no TTL":         {`"mode":"exclusive"`, "a TTL of 0 ms"},
		"a negative TTL": {`"mode":"exclusive","ttl_ms":-1`, "a TTL of -1 ms"},
		"a TTL just too long": {
			fmt.Sprintf(`"mode":"exclusive","ttl_ms":%d`, lock.MaxTTL.Milliseconds()+1),
			"a TTL of 604800001 ms",
		},
		"a TTL of 285 years": {`"mode":"exclusive","ttl_ms":9000000000000`, "a TTL of"},
		"a TTL that overflows": {
			fmt.Sprintf(`"mode":"exclusive","ttl_ms":%d`, int64(math.MaxInt64)), "a TTL of",
		},

		"no mode":                 {`"ttl_ms":30000`, "mode"},
		"another mode":            {`"ttl_ms":30000,"mode":"greedy"`, "mode"},
		"no limit":                {`"ttl_ms":30000,"mode":"semaphore"`, "limit"},
		"a negative limit":        {`"ttl_ms":30000,"mode":"semaphore","limit":-1`, "limit"},
		"a limit too great":       {`"ttl_ms":30000,"mode":"semaphore","limit":1000001`, "limit"},
		"a limit of no semaphore": {`"ttl_ms":30000,"mode":"shared","limit":1`, "limit"},
		"negative permits":        {`"ttl_ms":30000,"mode":"semaphore","limit":2,"permits":-1`, "permits"},
		"more permits than the limit": {
			`"ttl_ms":30000,"mode":"semaphore","limit":2,"permits":3`, "permits",
		},
		"permits of no semaphore": {`"ttl_ms":30000,"mode":"shared","permits":1`, "permits"},
		"a set of other locks":    {set(`{"name":"b","mode":"exclusive"}`), "not of a"},
		"a set with another mode": {
			set(`{"name":"a","mode":"exclusive"},{"name":"b","mode":""}`), "locks[1].mode",
		},
		"a set with a bad limit": {set(`{"name":"a","mode":"semaphore","limit":-3}`), "locks[0].limit"},
		"a set with a bad name": {
			set(`{"name":"a","mode":"exclusive"},{"name":"b/../c","mode":"exclusive"}`), "locks[1].name",
		},
		"a set with no name": {
			set(`{"name":"","mode":"exclusive"},{"name":"a","mode":"exclusive"}`), "locks[0].name",
		},
		"a set that repeats a lock": {
			set(`{"name":"a","mode":"shared"},{"name":"a","mode":"shared"}`), "repeats a",
		},
		"a set out of order": {set(`{"name":"b","mode":"shared"},{"name":"a","mode":"shared"}`), "order"},
		"a set too large":    {set(many), "32"},

		"a callback if not kept":  {kept(`"callback":{"url":"https://a","secret":"s"}`), "not kept"},
		"a callback to nowhere":   {kept(`"async":true,"callback":{"secret":"s"}`), "URL"},
		"a callback of no secret": {kept(`"async":true,"callback":{"url":"https://a"}`), "secret"},
		"a callback too long": {
			kept(
				`"async":true,"callback":{"url":"` + strings.Repeat("u", lock.MaxCallbackURL+1) +
					`","secret":"s"}`,
			),
			"URL",
		},
	} {
		checkDamaged(t, name, `{"holder":"worker-1","enqueued_ms":1700000000000,`+c.fields+`}`, c.says)
	}
	for _, text := range []string{
		"", "{", "null", "[]", "7", `{"ttl_ms":1e30}`, `{"ttl_ms":"30000"}`, "\x00",
	} {
		checkDamaged(t, fmt.Sprintf("%q", text), text, "")
	}
}

// TestDamagedPool: the same of an entry that asks for any of its locks.
func TestDamagedPool(t *testing.T) {
	const two = `{"name":"a","mode":"shared"},{"name":"b","mode":"shared"}`
	for _, c := range []struct{ home, claims, fields, says string }{
		{"a", two, `"any":1,"order":[0,1]`, "not of a"},
		{"a", two, `"order":[0,1]`, "an order of 2"},
		{"a", two, `"any":-1`, "any -1 of 2"},
		{lock.PoolHome, two, `"any":0`, "not of ~any"},
		{lock.PoolHome, two, `"any":3`, "any 3 of 2"},
		{lock.PoolHome, two, `"any":1`, "an order of 0"},
		{lock.PoolHome, two, `"any":1,"order":[0]`, "an order of 1"},
		{lock.PoolHome, two, `"any":2,"order":[0,1]`, "an order of 2"},
		{lock.PoolHome, two, `"any":1,"order":[1,1]`, "each lock once"},
		{lock.PoolHome, two, `"any":1,"order":[1,2]`, "each lock once"},
		{lock.PoolHome, "", `"any":1`, "lock name"},
	} {
		text := `{"ttl_ms":30000,"claims":[` + c.claims + `],` + c.fields + `}`
		checkDamagedAt(t, c.home, text, text, c.says)
	}
}

// TestForeignTrace: a trace that is none of ours is passed over, and the entry is not taken
// for damaged.
func TestForeignTrace(t *testing.T) {
	for _, trace := range []string{"00-whsec", aTrace + "0", "01" + aTrace[2:] + "-more"} {
		key := store.Key{Tenant: "acme", Lock: "a", ID: "01H"}
		v, err := store.ParseValue(
			key, []byte(`{"holder":"worker-1","ttl_ms":30000,"mode":"exclusive","trace":"`+trace+`"}`),
		)
		if err != nil {
			t.Errorf("%s: %v", trace, err)
		} else if e := v.Entry(key, 7); e.Trace != "" || e.Holder != "worker-1" {
			t.Errorf("%s: %+v", trace, e)
		}
	}
}

func checkDamaged(t *testing.T, name, text, says string) {
	t.Helper()
	checkDamagedAt(t, "a", name, text, says)
}

func checkDamagedAt(t *testing.T, home, name, text, says string) {
	t.Helper()
	k, err := store.ParseValue(store.Key{Tenant: "acme", Lock: home, ID: "01H"}, []byte(text))
	if err == nil {
		t.Errorf("%s is taken for %+v", name, k)
	} else if !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %q in it", name, err, says)
	}
}

const aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestForm: what is stored of an entry changes on purpose alone. A change that a reader would
// misread raises [store.Form].
func TestForm(t *testing.T) {
	plain := &lock.Entry{
		ID: "01H", Tenant: "acme", Holder: "w", TTL: time.Minute, EnqueuedAt: time.UnixMilli(7),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	if got, want := string(
		store.Encode(store.ValueOf(plain)),
	), `{"mode":"exclusive","holder":"w","ttl_ms":60000,"enqueued_ms":7}`; got != want {
		t.Errorf("a plain entry is %s, want %s", got, want)
	}
}

func FuzzParseValue(f *testing.F) {
	key := store.Key{Tenant: "acme", Lock: "a", ID: "01H"}
	for _, text := range []string{
		`{"mode":"exclusive","holder":"w","ttl_ms":60000,"enqueued_ms":7}`,
		`{"claims":[{"name":"a","mode":"shared"},{"name":"b","mode":"semaphore","limit":3,"permits":2}],"ttl_ms":60000,"async":true,"callback":{"url":"https://a","secret":"s"},"trace":"` + aTrace + `"}`,
		`{"claims":[{"name":"a","mode":"shared"}],"ttl_ms":60000,"any":1}`, `{`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		key := key
		v, err := store.ParseValue(key, text)
		if err != nil {
			key.Lock = lock.PoolHome
			v, err = store.ParseValue(key, text)
		}
		if err != nil {
			return
		}
		readAlike(t, v, text)
		e := v.Entry(key, 7)
		again, err := store.ParseValue(key, store.Encode(store.ValueOf(e)))
		if err != nil {
			t.Fatalf("%s is not read again: %v", text, err)
		}
		if diff := cmp.Diff(e.Callback, again.Entry(key, 7).Callback); diff != "" {
			t.Error(diff)
		}
	})
}

// readAlike fails unless encoding/json reads the same from text.
func readAlike[V any](t *testing.T, got V, text []byte) {
	t.Helper()
	var want V
	if err := json.Unmarshal(text, &want); err != nil {
		t.Errorf("%s is read as %+v, but it is no JSON: %v", text, got, err)
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}

// TestReadAlike: each text of an entry is read as encoding/json reads it, also a text in which a
// name or a number is written in another way.
func TestReadAlike(t *testing.T) {
	key := store.Key{Tenant: "acme", Lock: "a", ID: "01H"}
	for _, more := range []string{
		"", `,"holder":"w\u00f6rker"`, `,"holder":"wörker"`, `,"HOLDER":"w"`, `,"holder":null`,
		`,"holder":"w\\","subject":"\"s"`, `,"other":"x"`, `,"metadata":{"a":"b"}`, ` , "named" : true`,
		`,"named":false`, `,"handle":-7`, `,"handle":9223372036854775807`, `,"enqueued_ms":0`,
		`,"wait_until_ms":999999999999999999`, `,"async":true,"only_newest":true,"trace":"` + aTrace + `","request":"r"`,
		`,"holder":"first","holder":"second"`, `,"request_release":{"within_ms":7}`,
		`,"mode":"semaphore","limit":7,"permits":3`, `,"mode":"semaphore","limit":7,"permits":1`,
	} {
		text := []byte(`{"mode":"exclusive","ttl_ms":60000` + more + `}`)
		v, err := store.ParseValue(key, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		readAlike(t, v, text)
	}
	for _, text := range []string{
		`{"mode":"exclusive","ttl_ms":060000}`, `{"mode":"exclusive","ttl_ms":60000,}`,
		`{"mode":"exclusive","ttl_ms":60000}}`, `{"mode":"exclusive","ttl_ms":6e4x}`,
		"{\"mode\":\"exclusive\",\"ttl_ms\":60000,\"holder\":\"\n\"}", `{"mode":"exclusive" "ttl_ms":60000}`,
		`{"mode":"exclusive","ttl_ms":60000,"named":truely}`,
	} {
		checkDamaged(t, text, text, "")
	}
}

// TestReasonsReadAlike: a record of ends gives the same ids, reasons and notes whether or not
// what it says about the entries is read.
func TestReasonsReadAlike(t *testing.T) {
	const end = `{"id":"01H","tenant":"acme","reason":"released","at_ms":7`
	for _, text := range []string{
		`[]`, `[` + end + `}]`, `[` + end + `},` + end + `,"was":{"lock":"a","position":7}}]`,
		`[` + end + `,"was":{"claims":[{"name":"a}"}],"holder":"{\\\"","position":7}},` + end + `}]`,
		`[` + end + `,"was":{"lock":"a]"},"note":{"by":"op","reason":"why"}}]`, `[` + end + `,"was":null}]`,
	} {
		ends, err := store.ParseReasons([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var want []store.End
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ends, cmpopts.IgnoreFields(store.End{}, "Was")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{``, `[`, `[` + end + `}`, `[` + end + `}]]`, `[` + end + `,"was":{]`} {
		if ends, err := store.ParseReasons([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, ends)
		}
	}
}

// TestDamaged: it stands alone on its lock, and can be written and read like any other.
func TestDamaged(t *testing.T) {
	e := store.Damaged(store.Key{Tenant: "acme", Lock: "a", ID: "01H"}, 7, 9)
	if e.TTL != time.Minute || e.Number != 7 || e.Handle != 9 || e.ID != "01H" || e.Tenant != "acme" {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff([]lock.Claim{{Name: "a", Mode: lock.Exclusive}}, e.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if _, err := store.ParseValue(keyOf(e), store.Encode(store.ValueOf(e))); err != nil {
		t.Error(err)
	}
}
