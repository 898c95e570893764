package heap_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock/heap"
)

type number struct {
	heap.Place
	n int
}

func (a *number) Before(b *number) bool { return a.n < b.n }

// TestHeap does things at random to a heap and to a list that is sorted for each of them.
func TestHeap(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var h heap.Heap[*number]
		var model, gone []*number
		for range 300 {
			switch do := r.IntN(6); {
			case do < 2 || len(model) == 0:
				e := &number{n: r.IntN(50)}
				h.Push(e)
				model = append(model, e)
			case do == 2:
				e := h.Pop()
				model, gone = slices.DeleteFunc(model, func(o *number) bool { return o == e }), append(gone, e)
			case do == 3:
				e := model[r.IntN(len(model))]
				h.Remove(e)
				model, gone = slices.DeleteFunc(model, func(o *number) bool { return o == e }), append(gone, e)
			case do == 4:
				e := model[r.IntN(len(model))]
				e.n = r.IntN(50)
				h.Fix(e)
			default:
				for e := range h.All() {
					e.n = r.IntN(50)
				}
				h.FixAll()
			}
			check(t, &h, model, gone)
		}
		drained(t, &h, model)
	}
}

func check(t *testing.T, h *heap.Heap[*number], model, gone []*number) {
	t.Helper()
	if h.Len() != len(model) {
		t.Fatalf("%d elements, want %d", h.Len(), len(model))
	}
	for _, e := range gone {
		if e.Queued() {
			t.Fatal("one that was removed is queued")
		}
	}
	for _, e := range model {
		if !e.Queued() || e.Before(h.First()) {
			t.Fatalf("%d is queued: %t, before the first, %d", e.n, e.Queued(), h.First().n)
		}
	}
}

// drained takes all out, which must come in order, each once.
func drained(t *testing.T, h *heap.Heap[*number], model []*number) {
	t.Helper()
	slices.SortFunc(model, func(a, b *number) int { return cmp.Compare(a.n, b.n) })
	for _, want := range model {
		got := h.Pop()
		if got.n != want.n || got.Queued() {
			t.Fatalf("got %d, want %d", got.n, want.n)
		}
	}
}
