package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// told is what all replicas tell of what happened. Each event has one content, whichever
// replica tells it, and where a stream says that nothing is missing nothing is.
type told struct {
	mu      sync.Mutex
	over    bool // numbers name other events from now on
	content map[lock.EventID]string
	parts   []*part
	wrong   []string
}

// part is what one stream told without a gap: all events after from, up to to.
type part struct {
	stream   string
	from, to lock.EventID
	ids      map[lock.EventID]bool
}

func newTold() *told { return &told{content: map[lock.EventID]string{}} }

// begin begins a part.
func (t *told) begin(stream string, at lock.EventID) *part {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &part{stream: stream, from: at, to: at, ids: map[lock.EventID]bool{}}
	t.parts = append(t.parts, p)
	return p
}

// add takes over what a stream has told up to an id.
func (t *told) add(p *part, given []*events.Record, at lock.EventID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	for _, e := range given {
		text := contentOf(&e.Event)
		if other, known := t.content[e.ID]; known && other != text {
			t.wrong = append(
				t.wrong, fmt.Sprintf("%s tells %s as %s, another stream as %s", p.stream, e.ID, text, other),
			)
		}
		t.content[e.ID], p.ids[e.ID] = text, true
	}
	p.to = at
}

// contentOf is what replicas have to agree on: all but their own clocks.
func contentOf(e *lock.Event) string {
	text := fmt.Sprintf(
		"%s of %s at %d (%v, %q, held %t)", e.Kind, e.Entry.ID, e.Entry.Number, e.Entry.Claims, e.Reason,
		e.Held,
	)
	if e.Ask != nil {
		text += fmt.Sprint(" asks since ", e.Ask.Since.UnixMilli(), " within ", e.Ask.Within)
	}
	return text
}

// numbersChange ends the comparison: ids name other events from now on.
func (t *told) numbersChange() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// check notes what is missing in a part that another stream has told.
func (t *told) check(w *world) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range t.wrong {
		w.problem("events differ: %s", text)
	}
	for _, p := range t.parts {
		for id, text := range t.content {
			if id.Compare(p.from) > 0 && id.Compare(p.to) <= 0 && !p.ids[id] {
				w.problem(
					"events are missing: %s told everything from %s to %s but %s, %s", p.stream, p.from, p.to, id,
					text,
				)
			}
		}
	}
}

// follow has a stream tell the events of a replica until ctx ends, and returns up to where it
// has told them. after resumes behind an event.
func (t *told) follow(
	ctx context.Context,
	svc *service.Service,
	stream string,
	after *lock.EventID,
) *lock.EventID {
	for {
		s, err := svc.Events(ctx, service.EventsRequest{Of: lock.OwnTenant, After: after})
		if err == nil {
			defer s.Close()
			t.read(ctx, s, stream)
			at := s.At()
			return &at
		}
		if store.Pause(ctx, 100*time.Millisecond) != nil {
			return after
		}
	}
}

func (t *told) read(ctx context.Context, s *service.EventStream, stream string) {
	p, room := t.begin(stream, s.At()), make([]*events.Record, 0, 64)
	for ctx.Err() == nil {
		given, missed, more := s.Next(room)
		if missed != nil {
			p = t.begin(stream, s.At())
			continue
		}
		t.add(p, given, s.At())
		if more == nil {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
}

// watchEvents follows the events of a life of a replica.
func (r *replica) watchEvents() {
	r.living, r.unwatch = context.WithCancel(context.Background())
	ctx, name, svc := r.living, r.name(), r.svc
	r.calls.Go(func() { r.w.told.follow(ctx, svc, name, nil) })
}

// travel makes one stream continue at some replica after what it received at others.
func (w *world) travel(after *lock.EventID) {
	r := w.someReplica()
	if w.over {
		return
	}
	if r == nil {
		w.schedule(time.Second, func() { w.travel(after) })
		return
	}
	ctx, end := context.WithTimeout(r.living, w.between(time.Second, 8*time.Second))
	svc, life, name := r.svc, r.life, "resumed at "+r.name()
	r.calls.Go(func() {
		defer end()
		at := w.told.follow(ctx, svc, name, after)
		w.inbox.add(arrival{r.n, life, "traveled", -1, "", 0, func() {
			w.schedule(w.between(1, time.Second), func() { w.travel(at) })
		}})
	})
}
