package quota_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
)

// TestLimitsOfVeryMany: limits are set for so many tenants and no more. Those that are set can be
// changed.
func TestLimitsOfVeryMany(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{"sets": 1})
		settle()
		a.Know(quota.MaxTenants)
		if _, err := a.Set(t.Context(), quota.Change{Tenant: "other", By: operator()}); !errors.Is(
			err, lock.QuotaExceeded,
		) {
			t.Errorf("one more: %v", err)
		}
		a.sets(t, "acme", quota.Overrides{"sets": 2})
	})
}

// TestRecordOfAnotherName: what is no tenant's limits by its name does not hold as such.
func TestRecordOfAnotherName(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		k := store.RecordKey{Kind: quota.Kind, Tenant: "acme", ID: "limit"}
		if _, err := a.records.Put(
			t.Context(), store.RecordPut{RecordKey: k, Value: []byte(`{"limits":{"sets":0}}`)},
		); err != nil {
			t.Fatal(err)
		}
		settle()
		if *a.Of("acme") != *quota.Standard() {
			t.Errorf("the limits are %v", a.Of("acme"))
		}
	})
}
