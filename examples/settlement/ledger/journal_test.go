package ledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

const lock = "invoices:07"

func open(t *testing.T, path string, fencing bool) *ledger.Journal {
	t.Helper()
	j, err := ledger.Open(t.Context(), path, fencing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func newJournal(t *testing.T) *ledger.Journal {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "ledger.db"), true)
}

func payment(fence int64, invoice string) ledger.Entry {
	return ledger.Entry{
		Lock: lock, Fence: fence, Invoice: invoice, AmountCents: 100, Worker: fmt.Sprint("w", fence),
	}
}

func opening(fence int64) ledger.Entry {
	return ledger.Entry{Lock: lock, Fence: fence, Worker: fmt.Sprint("w", fence)}
}

func accept(t *testing.T, j *ledger.Journal, e ledger.Entry) {
	t.Helper()
	if created, err := j.Append(t.Context(), e); err != nil || !created {
		t.Fatalf("append %+v: created %v, error %v; want it created", e, created, err)
	}
}

func refuse(t *testing.T, j *ledger.Journal, e ledger.Entry, known int64) {
	t.Helper()
	_, err := j.Append(t.Context(), e)
	var stale *ledger.StaleFenceError
	if !errors.As(err, &stale) {
		t.Fatalf("append %+v: error %v; want a stale fence", e, err)
	}
	if want := (ledger.StaleFenceError{
		Lock: e.Lock, Presented: e.Fence, Known: known,
	}); *stale != want {
		t.Errorf("refused as %+v, want %+v", *stale, want)
	}
}

func entries(t *testing.T, j *ledger.Journal) []ledger.Entry {
	t.Helper()
	all, err := j.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOneHolderWritesAsOftenAsItLikes(t *testing.T) {
	j := newJournal(t)
	accept(t, j, opening(5))
	accept(t, j, payment(5, "INV-1"))
	accept(t, j, payment(5, "INV-2"))
}

func TestLowerFenceIsRefused(t *testing.T) {
	j := newJournal(t)
	accept(t, j, payment(5, "INV-1"))
	accept(t, j, opening(9)) // opening alone must shut the older holder out
	refuse(t, j, payment(5, "INV-2"), 9)
	refuse(t, j, opening(5), 9)
	accept(t, j, payment(9, "INV-2"))

	refusals, err := j.Refusals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(refusals) != 2 || refusals[0].Invoice != "INV-2" || refusals[0].Known != 9 ||
		refusals[0].Worker != "w5" {
		t.Errorf("refusals %+v, want the payment of INV-2 and the opening, both by w5", refusals)
	}
	if got := len(entries(t, j)); got != 3 {
		t.Errorf("%d entries, want 3: what was refused must not be there", got)
	}
}

func TestAWriteRaisesTheFenceToo(t *testing.T) {
	j := newJournal(t)
	accept(t, j, payment(9, "INV-1"))
	refuse(t, j, payment(8, "INV-1"), 9)
}

func TestFencesAreRememberedPerLock(t *testing.T) {
	j := newJournal(t)
	accept(t, j, payment(9, "INV-1"))
	other := payment(5, "INV-2")
	other.Lock = "invoices:08"
	accept(t, j, other)
}

func TestFencesSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a folder?with#odd&name.db")
	first, err := ledger.Open(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, first, opening(9))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	refuse(t, open(t, path, true), payment(8, "INV-1"), 9)
}

func TestARepeatedWriteIsAcceptedOnce(t *testing.T) {
	j := newJournal(t)
	accept(t, j, opening(5))
	accept(t, j, payment(5, "INV-1"))
	repeat := func(e ledger.Entry, want error) {
		t.Helper()
		if created, err := j.Append(t.Context(), e); created || !errors.Is(err, want) {
			t.Errorf("repeat %+v: created %v, error %v; want false, %v", e, created, err, want)
		}
	}
	repeat(opening(5), nil)
	repeat(payment(5, "INV-1"), nil)
	changed := payment(5, "INV-1")
	changed.AmountCents = 101
	repeat(changed, ledger.ErrDifferent)

	accept(t, j, opening(9))
	repeat(payment(5, "INV-1"), nil) // it was paid; a newer holder does not change that
	refuse(t, j, opening(5), 9)      // but what an older holder reads now is not final
	if got := len(entries(t, j)); got != 3 {
		t.Errorf("%d entries, want 3", got)
	}
}

func TestWithoutFencingTheLateWriteIsAccepted(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "ledger.db"), false)
	accept(t, j, opening(5))
	accept(t, j, opening(9))
	accept(t, j, payment(9, "INV-1"))
	accept(t, j, payment(5, "INV-1"))
}

// Holders with rising fences write at the same time, half of them through another
// journal on the same file, as a second process would. In the order of acceptance
// no fence may come after a higher one, and each answer must agree with the file.
func TestConcurrentHoldersNeverGoBack(t *testing.T) {
	const holders, writes = 16, 25
	path := filepath.Join(t.TempDir(), "ledger.db")
	journals := []*ledger.Journal{open(t, path, true), open(t, path, true)}
	var accepted sync.Map
	var all sync.WaitGroup
	start := make(chan struct{})
	for fence := range int64(holders) {
		all.Go(func() {
			<-start
			for n := range writes {
				e := payment(fence+1, fmt.Sprintf("INV-%d", n))
				created, err := journals[fence%2].Append(t.Context(), e)
				var stale *ledger.StaleFenceError
				switch {
				case created && err == nil:
					accepted.Store([2]any{e.Fence, e.Invoice}, true)
				case !errors.As(err, &stale):
					t.Errorf("append %+v: created %v, error %v", e, created, err)
				case stale.Known <= e.Fence:
					t.Errorf("fence %d refused though only %d was known", e.Fence, stale.Known)
				}
			}
		})
	}
	close(start)
	all.Wait()
	checkOrder(t, entries(t, journals[0]), &accepted)
}

func checkOrder(t *testing.T, all []ledger.Entry, accepted *sync.Map) {
	t.Helper()
	rising := slices.IsSortedFunc(all, func(a, b ledger.Entry) int { return int(a.Fence - b.Fence) })
	if !rising {
		t.Error("a fence was accepted after a higher one")
	}
	for _, e := range all {
		if _, told := accepted.LoadAndDelete([2]any{e.Fence, e.Invoice}); !told {
			t.Errorf("%+v is in the journal, but its writer was not told so", e)
		}
	}
	accepted.Range(func(key, _ any) bool {
		t.Errorf("%v was accepted, but is not in the journal", key)
		return true
	})
	if last := all[len(all)-1].Fence; last != 16 {
		t.Errorf("the last fence is %d; the newest holder must always be accepted", last)
	}
}
