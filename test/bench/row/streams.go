package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// The row about streams: so many readers of events in all, as many as a tenant may have of each
// tenant, and how many events there are a second in all.
const (
	streamTenants    = 10
	streamsOfTenant  = 100
	eventsPerSecond  = 500
	eventsOfCycle    = 2 // a grant and a release
	writersOfATenant = 8
	// observed is how long memory, and the processor, are looked at.
	observed = 3 * time.Second
)

// runStreams measures how long events take to many readers, and what the readers cost.
func runStreams(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(2 * streamTenants * streamsOfTenant); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	s := &streamBench{bench: b, marks: newMarks()}
	if s.served, err = b.serveOne(ctx, &cs); err != nil {
		return nil, err
	}
	for i := range streamTenants {
		of, err := clientsOf(s.replica, fmt.Sprintf("streamed-%d", i), &cs)
		if err != nil {
			return nil, err
		}
		s.tenants = append(s.tenants, of)
	}
	if err := b.heat(ctx, s.load.Workers(manyClients)); err != nil {
		return nil, err
	}
	writing := s.write(ctx)
	outcomes, err := s.measure(ctx)
	return outcomes, errors.Join(err, writing())
}

// streamBench is the row.
type streamBench struct {
	*bench
	*served
	tenants []side.Fencepost
	marks   *marks

	grown, live float64 // KiB for each stream
	p99s        []float64
	perSecond   []float64
	idle        float64   // processors, before there are streams
	cores       []float64 // with them
}

// write has the tenants' locks taken and released at the row's rate until it is stopped.
func (s *streamBench) write(ctx context.Context) (stop func() error) {
	var workers []load.Worker
	for range writersOfATenant {
		for _, of := range s.tenants {
			workers = append(workers, s.marks.timed(of.Workers(1)[0]))
		}
	}
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := load.Open{
			Workers: workers, Rate: eventsPerSecond / eventsOfCycle, Duration: time.Hour, Until: end, Name: markedName,
		}.Run(ctx)
		ended <- err
	}()
	return func() error {
		close(end)
		return <-ended
	}
}

func (s *streamBench) measure(ctx context.Context) ([]Outcome, error) {
	if err := s.readers(ctx); err != nil {
		return nil, err
	}
	run := s.watched(s.bench, s.uncontended(s.load.Workers(manyClients)))
	with := func(ctx context.Context, round int) (*load.Result, error) {
		streams, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		r, err := run(ctx, 2*round)
		return r, errors.Join(err, streams.close())
	}
	without := func(ctx context.Context, round int) (*load.Result, error) { return run(ctx, 2*round+1) }
	c, err := s.compare(ctx, contender{"with streams", s.pids, with}, contender{"without", s.pids, without})
	if err != nil {
		return nil, err
	}
	return s.outcomes(c), nil
}

// readers measures how long events take to readers that there are besides nothing else, and
// their memory.
func (s *streamBench) readers(ctx context.Context) error {
	before, err := steadyFootprint(ctx, s.replica, observed)
	if err != nil {
		return err
	}
	idle := spend(s.pids)
	if err := pause(ctx, observed); err != nil {
		return err
	}
	s.idle = spend(s.pids).since(idle).server
	streams, err := s.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.latencies(ctx), s.memory(ctx, before, streams))
}

// latencies measures how long events take to the readers.
func (s *streamBench) latencies(ctx context.Context) error {
	for round := range s.Rounds + 1 { // the first one is the warm-up
		s.marks.reset()
		start := spend(s.pids)
		if err := pause(ctx, s.Duration); err != nil {
			return err
		}
		used, told := spend(s.pids).since(start), s.marks.all()
		rate := float64(told.Count()) / streamsOfTenant / s.Duration.Seconds()
		s.logf("round %d: %.0f events/s, each to %d readers, p50 %s p99 %s  cores: server %.2f, load %.2f, rest %.2f", round, rate, streamsOfTenant,
			millis(told.Percentile(50)), millis(told.Percentile(99)), used.server, used.load, used.rest)
		if round > 0 {
			s.p99s, s.perSecond = append(s.p99s, told.Percentile(99).Seconds()), append(s.perSecond, rate)
			s.cores = append(s.cores, used.server)
			s.marks.total.Merge(told)
		}
	}
	return nil
}

// memory measures what the server needs less when the streams are closed: what it keeps of
// the events themselves is there before and after.
func (s *streamBench) memory(ctx context.Context, before footprint, streams *readers) error {
	after, err := steadyFootprint(ctx, s.replica, observed)
	with, err2 := live(ctx, s.replica)
	if err := errors.Join(err, err2, streams.close()); err != nil {
		return err
	}
	if err := s.awaitNoStreams(ctx); err != nil {
		return err
	}
	without, err := live(ctx, s.replica)
	const n = 1024 * streamTenants * streamsOfTenant
	s.grown, s.live = (after.all-before.all)/n, (with-without)/n
	s.logf("%.1f KiB live for each stream, %.1f KiB resident", s.live, s.grown)
	return err
}

// awaitNoStreams waits until the server has noticed that the readers are gone.
func (s *streamBench) awaitNoStreams(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); ; {
		n, err := figure(ctx, s.replica, inFlightFigure)
		if err != nil || n < streamsOfTenant {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%v requests are under way long after all streams were closed", n)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *streamBench) outcomes(c *comparison) []Outcome {
	const (
		latest = 250 * time.Millisecond
		memory = 64
		effect = 0.9
	)
	what := fmt.Sprintf("%s streams, %s events a second, on %s: ", number(streamTenants*streamsOfTenant), number(load.Median(s.perSecond)), &s.Store)
	p99 := seconds(load.Median(s.p99s))
	s1 := c.outcome("streams", what+"uncontended cycles of 128 clients, against without them", effect)
	s1.Notes = c.disturbance()
	return []Outcome{
		{
			ID: "streams", What: what + "an event, from its request to each reader, p99", Ours: millis(p99), Bar: "≤ " + millis(latest), Met: verdict(p99 <= latest),
			OurP50: millis(s.marks.total.Percentile(50)), OurP99: millis(s.marks.total.Percentile(99)),
			Notes: []string{fmt.Sprintf("%d tenants of %d readers each, to whom half of the events are grants and half releases; each event is told to the readers of its tenant. "+
				"Counted from before the request is sent to when the reader has its event.", streamTenants, streamsOfTenant)},
		},
		{
			ID: "streams", What: what + "memory of a stream", Ours: kib(s.live), Bar: "≤ " + kib(memory), Met: verdict(s.live <= memory),
			Notes: []string{fmt.Sprintf("What the server's heap and stacks have less after a collection when the streams are closed, divided by their number; its resident memory grew by %s for each. "+
				"The server took %.2f processors with the streams and %.2f without. In the comparison the events are caused in both turns, and the readers share the processors with the server.", kib(s.grown), load.Median(s.cores), s.idle)},
		},
		s1,
	}
}

func kib(n float64) string { return fmt.Sprintf("%.1f KiB", n) }

// pause waits while the server does something that is measured.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
