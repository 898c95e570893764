package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestWithdrawnAfterTheRecord: the key of an entry that expired, and was in use again before that was recorded, is used up
// by the entry that expired when the second one is withdrawn after the record; it is not freed. If it ends otherwise that
// counts.
func TestWithdrawnAfterTheRecord(t *testing.T) {
	for name, c := range map[string]struct {
		why    lock.Reason
		record int // how many replicas record it
		want   lock.Reason
	}{
		"withdrawn":                       {why: lock.Withdrawn, record: 1, want: lock.Expired},
		"withdrawn, of two":               {why: lock.Withdrawn, record: 2, want: lock.Expired},
		"released":                        {why: lock.Released, record: 1, want: lock.Released},
		"withdrawn, not before":           {why: lock.Withdrawn},
		"expired, until that is recorded": {why: lock.Expired, record: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
			draft := reusable("again", true)
			first := s.mustEnqueue(t, draft)
			if err := s.leases.revoke(t.Context(), first.Handle); err != nil {
				t.Fatal(err)
			}
			second := s.mustEnqueue(t, draft)
			if second.Number == first.Number {
				t.Fatal("it has not expired")
			}
			for range c.record {
				end := unrecordedEnd{
					End:    store.End{ID: first.ID, Tenant: first.Tenant, Reason: lock.Expired, At: time.Now().UnixMilli()},
					marked: true, key: store.Key{Tenant: first.Tenant, Lock: first.Name(), ID: first.ID},
				}
				if err := s.recordSome([]unrecordedEnd{end}); err != nil {
					t.Fatal(err)
				}
			}
			if again, written, err := s.Enqueue(t.Context(), draft); err != nil || written || again.Number != second.Number {
				t.Fatalf("the second one is found as %+v, %t, %v", again, written, err)
			}
			if c.why == lock.Expired {
				if err := s.leases.revoke(t.Context(), second.Handle); err != nil {
					t.Fatal(err)
				}
			} else if err := s.Remove(t.Context(), second, c.why); err != nil {
				t.Fatal(err)
			}
			_, written, err := s.Enqueue(t.Context(), draft)
			var used *lock.Error
			if errors.As(err, &used); c.want == "" && (!written || err != nil) || c.want != "" && (used == nil || used.Code != lock.Lost || used.Reason != c.want) {
				t.Errorf("the key gives %t, %v; want %q", written, err, c.want)
			}
		})
	}
}

// TestMarksAreKeptApart: what a mark says is told by how its value begins.
func TestMarksAreKeptApart(t *testing.T) {
	living, before := string(store.Encode(mark{Lock: "a"})), string(store.Encode(mark{Lock: "a", Before: lock.Expired}))
	for value, says := range map[string]bool{
		living: false, before: true,
		string(store.Encode(mark{Lock: "a-b", Before: lock.Expired})): false, string(store.Encode(mark{Reason: lock.Expired})): false,
	} {
		from, to := valuesOf(mark{Lock: "a"})
		if got := from < value && value < to; got != says {
			t.Errorf("%s says that an entry expired before: %t", value, got)
		}
	}
}
