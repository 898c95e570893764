package quota_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// TestLimits: each has a name of its own and a default within its bounds.
func TestLimits(t *testing.T) {
	seen, name := map[string]bool{}, regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	standard := quota.Standard()
	for _, l := range quota.All() {
		if seen[l.String()] || !name.MatchString(l.String()) {
			t.Errorf("limit %d is %q", l, l)
		}
		seen[l.String()] = true
		if standard[l] <= 0 || l.Check(standard[l]) != "" || l.Check(0) != "" || l.Check(l.Most()) != "" {
			t.Errorf("%s is %d", l, standard[l])
		}
		if l.Check(-1) == "" || l.Check(l.Most()+1) == "" {
			t.Errorf("%s has no bounds", l)
		}
	}
	if len(seen) != int(quota.Count) {
		t.Errorf("%d limits, want %d", len(seen), quota.Count)
	}
}

// TestOverrides: what is set for a tenant goes before the defaults, 0 too, and is read as it
// was written. What cannot be is an error, and nothing is taken of it.
func TestOverrides(t *testing.T) {
	set := quota.Overrides{"held_locks": 7, "requests_per_second": 0}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	var read quota.Overrides
	if err := json.Unmarshal(text, &read); err != nil || cmp.Diff(set, read) != "" {
		t.Fatalf("%s is read as %v, %v", text, read, err)
	}
	want := *quota.Standard()
	want[quota.HeldLocks], want[quota.Requests] = 7, 0
	if got := read.Over(quota.Standard()); *got != want {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{
		``, `null`, `7`, `[]`, `{"waiting":"7"}`, `{"waiting":null}`, `{"waiting":-1}`,
		`{"webhooks":1001}`, `{"waiting":1.5}`,
	} {
		read = quota.Overrides{"sets": 1}
		if err := json.Unmarshal([]byte(bad), &read); err == nil || len(read) != 1 {
			t.Errorf("%s is read as %v", bad, read)
		}
	}
	if err := json.Unmarshal([]byte(`{"of_a_later_version":{},"sets":3}`), &read); err != nil ||
		len(read) != 1 || read["sets"] != 3 {
		t.Errorf("what a later version wrote is read as %v, %v", read, err)
	}
}

// TestRefusals name the limit and the numbers.
func TestRefusals(t *testing.T) {
	limits := quota.Standard()
	limits[quota.Sets] = 3
	for _, e := range []*lock.Error{limits.Exceeded(quota.Sets, 5), limits.TooFast(quota.Sets, 5, 1)} {
		if e.RetryAfter <= 0 || e.Quota == nil || e.Quota.Name != "sets" || e.Quota.Limit != 3 {
			t.Errorf("%+v", e)
		}
	}
	if e := limits.Exceeded(quota.Sets, 5); e.Code != lock.QuotaExceeded || e.Quota.Used != 5 {
		t.Errorf("%+v", e)
	}
}

// TestParse: the limits of --default-quotas; what is wrong is an error.
func TestParse(t *testing.T) {
	want := *quota.Standard()
	want[quota.HeldLocks], want[quota.Sets] = 7, 0
	got := quota.Standard()
	if err := got.Parse(" held_locks=7, sets = 0,"); err != nil || *got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{
		"held-locks=7", "held_locks", "held_locks=x", "held_locks=-1", "webhooks=1001", "=7",
	} {
		if err := quota.Standard().Parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
