// Package heap is container/heap for elements of one type that know their index, so that a
// changed or removed element need not be searched for.
package heap

import "iter"

// Place is an element's index in a heap. Elements embed it; its zero value is in no heap.
type Place struct {
	at int // from 1 on
}

// Queued reports whether the element is in a heap.
func (p *Place) Queued() bool { return p.at != 0 }

func (p *Place) place() *Place { return p } //nolint:unused // elements have it from here, as Element demands

// Element is a pointer to a struct that embeds [Place]. An element is in one heap at a time.
type Element[E any] interface {
	comparable

	// Before reports whether the element sorts in front of the other. While the element is in a
	// heap, its sort key changes only with a call of Fix.
	Before(E) bool

	place() *Place
}

// Heap keeps its first element available. Its zero value is empty. It is not safe for concurrent
// use.
type Heap[E Element[E]] struct {
	all []E
}

// Len returns how many elements there are.
func (h *Heap[E]) Len() int { return len(h.all) }

// First returns the first element. There must be one.
func (h *Heap[E]) First() E { return h.all[0] }

// All yields all elements in no particular order. The heap must not change meanwhile.
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

// Fix moves a changed element of this heap to its new index.
func (h *Heap[E]) Fix(e E) { h.put(e.place().at-1, e) }

// FixAll restores the order after any elements have changed.
func (h *Heap[E]) FixAll() {
	for at := len(h.all)/2 - 1; at >= 0; at-- {
		h.down(at, h.all[at])
	}
}

// put places e, starting from a free index.
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
