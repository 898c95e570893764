package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestTimersOfManyGoroutines: goroutines look at timers that are due at once. With
// synctest.Test alone the race detector ends the process within the first of these bubbles,
// as soon as there are two processors.
func TestTimersOfManyGoroutines(t *testing.T) {
	for range 5 {
		bubble.Test(t, func(*testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 2000 {
						first, second := time.NewTimer(time.Millisecond), time.NewTimer(time.Millisecond)
						<-first.C
						<-second.C
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestProcessorsComeBack: after the last of bubbles in parallel tests there are as many as
// before.
func TestProcessorsComeBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("bubbles", func(t *testing.T) {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 10 {
					bubble.Test(t, func(*testing.T) { <-time.After(time.Second) })
				}
			})
		}
	})
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("there are %d processors, before there were %d", n, before)
	}
}
