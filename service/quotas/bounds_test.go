package quotas_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestLimitsOfVeryMany: limits are set for so many tenants and no more. Those that are set can be changed.
func TestLimitsOfVeryMany(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{quota.Sets: 1})
		settle()
		a.Know(quotas.MaxTenants)
		if _, err := a.Set(t.Context(), quotas.Change{Tenant: "other", By: operator()}); !errors.Is(err, lock.QuotaExceeded) {
			t.Errorf("one more: %v", err)
		}
		a.sets(t, "acme", quota.Overrides{quota.Sets: 2})
	})
}

// TestRecordOfAnotherName: what is no tenant's limits by its name does not hold as such.
func TestRecordOfAnotherName(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		k := store.RecordKey{Kind: quotas.Kind, Tenant: "acme", ID: "limit"}
		if _, err := a.records.Put(t.Context(), store.RecordPut{RecordKey: k, Value: []byte(`{"limits":{"sets":0}}`)}); err != nil {
			t.Fatal(err)
		}
		settle()
		if *a.Of("acme") != *quota.Standard() {
			t.Errorf("the limits are %v", a.Of("acme"))
		}
	})
}

// TestIdleWithoutQuota: who may ask for nothing owes nothing for ever, and is forgotten as others are.
func TestIdleWithoutQuota(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		none := quota.Standard()
		none[quota.Requests] = 0
		b := quotas.New(quotas.Config{Defaults: none})
		for i := range quotas.MaxPaced {
			if b.Take(fmt.Sprint("a", i), quota.Requests) == nil {
				t.Fatal("it is taken")
			}
		}
		<-time.After(5 * time.Second)
		_ = b.Take("acme", quota.Requests)
		if n := b.Remembered(); n != 1 {
			t.Errorf("%d tenants are remembered", n)
		}
	})
}
