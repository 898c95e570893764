package quotas_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

// TestRateAtOnce: however many ask at once, no more is taken than the limit. A limiter that is told a
// time before the last one goes back to it, and counts what has passed since once more. It does so while there
// is something to take, so that each of many tenants has its second's worth taken at once.
func TestRateAtOnce(t *testing.T) {
	const limit, tenants = 50_000, 20
	d := *quota.Standard()
	d[quota.Requests] = limit
	b := quotas.New(quotas.Config{Defaults: &d})
	for i := range tenants {
		var taken atomic.Int64
		var all sync.WaitGroup
		began, tenant := time.Now(), fmt.Sprint("tenant-", i)
		for range 256 {
			all.Go(func() {
				for time.Since(began) < 150*time.Millisecond {
					if b.Take(tenant, quota.Requests) == nil {
						taken.Add(1)
					}
					runtime.Gosched()
				}
			})
		}
		all.Wait()
		most := float64(limit) * (1 + time.Since(began).Seconds())
		if float64(taken.Load()) > 1.01*most {
			t.Errorf("%d are taken where %.0f may be", taken.Load(), most)
		}
	}
}
