package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// options are one attribute set in the forms in which instruments take it,
// built once: passing them on allocates nothing.
type options struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// sets remembers the options for each key. Keys beyond the limit share those of
// other, so that the number of series is bounded whatever callers pass.
type sets[K comparable] struct {
	attributes func(K) []attribute.KeyValue
	other      options
	limit      int

	growing sync.Mutex
	known   atomic.Pointer[map[K]options] // replaced, never changed
}

// newSets returns sets that hold known from the start and grow up to limit keys.
func newSets[K comparable](
	limit int, attributes func(K) []attribute.KeyValue, other K, known ...K,
) *sets[K] {
	s := &sets[K]{attributes: attributes, limit: limit}
	s.other = s.build(other)
	all := make(map[K]options, len(known))
	for _, k := range known {
		all[k] = s.build(k)
	}
	s.known.Store(&all)
	return s
}

// newClosedSets returns sets that hold known and never grow.
func newClosedSets[K comparable](
	attributes func(K) []attribute.KeyValue, other K, known ...K,
) *sets[K] {
	return newSets(len(known), attributes, other, known...)
}

func (s *sets[K]) build(k K) options {
	option := metric.WithAttributeSet(attribute.NewSet(s.attributes(k)...))
	return options{record: []metric.RecordOption{option}, add: []metric.AddOption{option}}
}

// knows reports whether a key has options of its own.
func (s *sets[K]) knows(k K) bool {
	_, ok := (*s.known.Load())[k]
	return ok
}

func (s *sets[K]) of(k K) options {
	if o, ok := (*s.known.Load())[k]; ok {
		return o
	}
	return s.learn(k)
}

// learn takes a mutex, and so do unknown words at the limit; known ones never come here.
func (s *sets[K]) learn(k K) options {
	s.growing.Lock()
	defer s.growing.Unlock()
	known := *s.known.Load()
	if o, ok := known[k]; ok {
		return o
	}
	if len(known) >= s.limit {
		return s.other
	}
	grown := maps.Clone(known)
	grown[k] = s.build(k)
	s.known.Store(&grown)
	return grown[k]
}
