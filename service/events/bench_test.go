package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// BenchmarkAdd is what an event costs the view, which holds its lock meanwhile, beside those
// who follow.
func BenchmarkAdd(b *testing.B) {
	for _, followers := range []int{0, 1000} {
		b.Run(fmt.Sprint(followers, "followers"), func(b *testing.B) {
			l := events.NewLog(events.Config{Limits: streams(2000)})
			defer l.Close()
			l.Begin(1)
			for l.Told() == 0 {
				<-time.After(time.Millisecond) // until it has begun
			}
			stop := make(chan struct{})
			defer close(stop)
			for range followers {
				s, err := l.Subscribe(events.Request{Of: "a", Tenant: "a"})
				if err != nil {
					b.Fatal(err)
				}
				go read(s, stop)
			}
			e := &lock.Entry{
				ID:     "5mdrk1w5pvy0wg1dcjt2b2gthr",
				Tenant: "a",
				Holder: "worker-7",
				Claims: []lock.Claim{{Name: strings.Repeat("x", 20)}},
			}
			b.ReportAllocs()
			for n := uint64(2); b.Loop(); n++ {
				l.Add(
					lock.Event{
						ID:    lock.EventID{Number: n, Index: 1},
						Kind:  lock.EventAcquired,
						Entry: e,
						Held:  true,
						At:    time.Now(),
					},
				)
				l.Reached(n)
			}
		})
	}
}

// read takes what there is until stop is closed.
func read(s *events.Subscription, stop <-chan struct{}) {
	defer s.Close()
	for room := make([]*events.Record, 64); ; {
		_, _, more := s.Next(room)
		if more == nil {
			continue
		}
		select {
		case <-more:
		case <-stop:
			return
		}
	}
}
