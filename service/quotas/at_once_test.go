package quotas_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

// TestRateAtOnce: however many ask at once, no more is taken than the limit. A limiter that is told a
// time before the last one goes back to it, and counts what has passed since once more.
func TestRateAtOnce(t *testing.T) {
	const limit, lasts = 50_000, 2 * time.Second
	d := *quota.Standard()
	d[quota.Requests] = limit
	b := quotas.New(quotas.Config{Defaults: &d})
	var taken atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range 256 {
		all.Go(func() {
			for time.Since(began) < lasts {
				if b.Take("acme", quota.Requests) == nil {
					taken.Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	most := float64(limit) * (1 + time.Since(began).Seconds())
	if float64(taken.Load()) > 1.02*most {
		t.Errorf("%d are taken where %.0f may be", taken.Load(), most)
	}
}
