package deadlock_test

import (
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestEntriesOfNamesakes: holders of one name are listed by their subjects, whichever came or left
// first.
func TestEntriesOfNamesakes(t *testing.T) {
	who := lock.Ref{Tenant: "t", Name: "worker"}
	for gone := range 3 {
		table, want := deadlock.NewTable(), []lock.ID(nil)
		all := []lock.ID{"b", "c", "a"}
		for i, id := range all {
			e := locktest.Entry(id, uint64(i+1), string(id))
			e.Named, e.Holder, e.Subject = true, who.Name, string(id)
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
		}
		table.Remove(all[gone])
		want = slices.Sorted(slices.Values(slices.Delete(all, gone, gone+1)))
		var got []lock.ID
		for e := range table.EntriesOf(who) {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d left: %v, want %v", gone, got, want)
		}
		for _, id := range want {
			table.Remove(id)
		}
		for e := range table.EntriesOf(who) {
			t.Errorf("%s is left", e.ID)
		}
	}
}
