package batch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/store/batch"
)

// TestSending: before the committer sends a batch, it reports the traced requests that share
// it, and reports nothing if no request is traced.
func TestSending(t *testing.T) {
	withCommitter(t, batch.Limits{
		Ops: 10, Bytes: 1000, InFlight: 1, Most: 1,
	}, func(t *testing.T, c *committer, f *fakeStore) {
		var mu sync.Mutex
		var told [][]byte
		c.Sending = func(requests []trace.SpanContext) func() {
			mu.Lock()
			defer mu.Unlock()
			var ids []byte
			for _, r := range requests {
				id := r.TraceID()
				ids = append(ids, id[0])
			}
			told = append(told, ids)
			return func() {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, nil)
			}
		}
		request := func(n byte, flags trace.TraceFlags) context.Context {
			return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}, TraceFlags: flags,
			}))
		}
		var all sync.WaitGroup
		for i, ctx := range []context.Context{
			request(1, 0), request(2, trace.FlagsSampled), request(3, 0), request(4, trace.FlagsSampled),
		} {
			all.Go(func() {
				if _, err := c.Do(ctx, join(i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first goes alone, and the others gather meanwhile
		}
		all.Wait()
		synctest.Wait() // a write is settled before its batch has ended
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([][]byte{{2, 4}, nil}, told); diff != "" {
			t.Errorf("what is told (-want +got):\n%s", diff)
		}
	})
}
