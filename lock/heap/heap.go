// Package heap has a queue with the first of its elements in front, whose elements know
// their places in it: one that has changed, or is not wanted any more, need not be searched
// for. It is what container/heap is for elements of one type.
package heap

import "iter"

// Place is where an element stands in a heap. Elements embed it; its zero value is nowhere.
type Place struct {
	at int // from 1 on
}

// Queued reports whether the element is in a heap.
func (p *Place) Queued() bool { return p.at != 0 }

func (p *Place) place() *Place { return p } //nolint:unused // elements have it from here, as Element demands

// Element is what heaps are made of: pointers to structs that embed [Place]. An element is
// in one heap at a time.
type Element[E any] interface {
	comparable

	// Before reports whether the element sorts in front of the other. What it goes by
	// does not change while the element is in a heap, unless Fix is called then.
	Before(E) bool

	place() *Place
}

// Heap has its elements in such an order that the first is found at once. Its zero value is
// empty. It is not safe for concurrent use.
type Heap[E Element[E]] struct {
	all []E
}

// Len returns how many elements there are.
func (h *Heap[E]) Len() int { return len(h.all) }

// First returns the element before which there is no other. There must be one.
func (h *Heap[E]) First() E { return h.all[0] }

// All yields all elements in no particular order, while none is added or removed.
func (h *Heap[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		for _, e := range h.all {
			if !yield(e) {
				return
			}
		}
	}
}

// Push adds an element, which must be in no heap.
func (h *Heap[E]) Push(e E) {
	h.all = append(h.all, e)
	h.up(len(h.all)-1, e)
}

// Pop removes the first element and returns it. There must be one.
func (h *Heap[E]) Pop() E {
	first := h.all[0]
	h.Remove(first)
	return first
}

// Remove removes an element of this heap.
func (h *Heap[E]) Remove(e E) {
	at, last := e.place().at-1, len(h.all)-1
	moved := h.all[last]
	var none E
	h.all[last] = none
	h.all = h.all[:last]
	e.place().at = 0
	if at < last {
		h.put(at, moved)
	}
}

// Fix puts an element of this heap, which has changed, into its place.
func (h *Heap[E]) Fix(e E) { h.put(e.place().at-1, e) }

// FixAll puts all elements into their places, after any of them has changed.
func (h *Heap[E]) FixAll() {
	for at := len(h.all)/2 - 1; at >= 0; at-- {
		h.down(at, h.all[at])
	}
}

// put puts e where it belongs, from a place that is free.
func (h *Heap[E]) put(at int, e E) {
	if at > 0 && e.Before(h.all[(at-1)/2]) {
		h.up(at, e)
	} else {
		h.down(at, e)
	}
}

func (h *Heap[E]) up(at int, e E) {
	for at > 0 && e.Before(h.all[(at-1)/2]) {
		h.set(at, h.all[(at-1)/2])
		at = (at - 1) / 2
	}
	h.set(at, e)
}

func (h *Heap[E]) down(at int, e E) {
	for next := 2*at + 1; next < len(h.all); next = 2*at + 1 {
		if other := next + 1; other < len(h.all) && h.all[other].Before(h.all[next]) {
			next = other
		}
		if !h.all[next].Before(e) {
			break
		}
		h.set(at, h.all[next])
		at = next
	}
	h.set(at, e)
}

// set writes only what changes: most elements stay at their position.
func (h *Heap[E]) set(at int, e E) {
	if p := e.place(); p.at != at+1 || h.all[at] != e {
		h.all[at], p.at = e, at+1
	}
}
