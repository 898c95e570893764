package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const someBody = `{"ttl_seconds":10,"wait_seconds":5,"holder":"w","metadata":{"a":"b","c":"d"}}`

// TestSameKeyIsTheSameEntry: the same key is the same entry, on every replica.
func TestSameKeyIsTheSameEntry(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ first, again []option }{
		"Same":        {[]option{body(someBody)}, []option{body(someBody)}},
		"NoBody":      {nil, nil},
		"EmptyObject": {nil, []option{body(`{}`)}},
		"Defaults": {
			nil,
			[]option{
				body(
					`{"ttl_seconds":30,"wait_seconds":0,"mode":"exclusive","holder":"worker-1","metadata":{}}`,
				),
			},
		},
		"OtherSpaces": {
			[]option{body(someBody)}, []option{body(strings.ReplaceAll(someBody, ",", " , "))},
		},
		"OtherNumbers": {[]option{body(`{"ttl_seconds":10}`)}, []option{body(`{"ttl_seconds":1.0e1}`)}},
	}
	for name, tc := range cases {
		for where, at := range map[string]*replica{"Here": shared.main, "Elsewhere": shared.brief} {
			t.Run(name+where, func(t *testing.T) {
				t.Parallel()
				c := newTenant(t)
				a := c.post("/locks/orders:42", append(tc.first, key("k"))...)
				first := a.held(http.StatusCreated)
				again := c.at(at).post("/locks/orders:42", append(tc.again, key("k"))...)
				second := again.held(http.StatusCreated)
				changing := cmpopts.IgnoreFields(entry{}, "ExpiresAt", "WaitedSeconds")
				if diff := cmp.Diff(first, second, changing); diff != "" {
					t.Errorf("(-first +again)\n%s", diff)
				}
				if took := again.received.Sub(a.sent).Seconds(); *second.WaitedSeconds > took {
					t.Errorf("waited_seconds = %v after %v s", *second.WaitedSeconds, took)
				}
				again.wantFullTTL(second, 0)
			})
		}
	}
}

// TestKeysAreNotConfused: what a key may be, and that no two are confused.
func TestKeysAreNotConfused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	ids := map[string]bool{}
	for _, k := range []string{
		"k", "K", "k k", "~!@#$%^&*()\"'\\", strings.Repeat("k", 200), strings.Repeat("k", 199),
	} {
		e := c.acquire("orders:42", key(k))
		if again := c.acquire("orders:42", key(k)); again.ID != e.ID || ids[e.ID] {
			t.Errorf("key %q: entries %s and %s, seen %v", k, e.ID, again.ID, ids)
		}
		ids[e.ID] = true
		c.release(e)
	}
	c.acquire("orders:42", key("x"))
	if a, b := c.acquire("orders:43", key("x")), c.acquire("orders:44", key("x")); a.ID == b.ID {
		t.Error("one key is one entry of two locks")
	}
}

// TestKeyWithOtherParametersIsRefused: a key cannot be used for something else, whether its entry
// holds or waits.
func TestKeyWithOtherParametersIsRefused(t *testing.T) {
	t.Parallel()
	want := problem{
		code: "idempotency_mismatch",
		detail: "the idempotency key was used before with other parameters; " +
			"repeat those, or use a new key",
	}
	c := newTenant(t)
	c.acquire("held", body(someBody), key("k"))
	c.at(shared.brief).post("/locks/held", body(`{}`), key("k")).wantProblem(want)
	c.acquire("waited")
	c.join("waited", body(someBody), key("k"))
	c.post("/locks/waited", body(`{}`), key("k")).wantProblem(want)
}

func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	want := invalid("Idempotency-Key", "must be 1 to 200 printable characters")
	for name, values := range map[string][]string{
		"Empty": {""}, "TooLong": {strings.Repeat("k", 201)}, "NotASCII": {"schlüssel"}, "Tab": {"a\tb"},
		"Twice":        {"a", "b"},
		"TwiceTheSame": {"a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			c.post("/locks/orders:42", header("Idempotency-Key", values...)).wantProblem(want)
			c.acquire("orders:42") // nothing was taken
		})
	}
}
