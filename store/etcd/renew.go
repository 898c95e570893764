package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store"
)

const (
	// renewStreams is the number of streams for renewals. A member serves a stream strictly in
	// order, and a renewal of a lease that has expired but is not yet revoked delays all behind it.
	renewStreams = 4

	// renewBacklog bounds the unsent renewals of one stream.
	renewBacklog = 8192

	// renewAhead bounds the renewals of a stream that are sent and not answered. More would only
	// wait at the member, which would still process them after their callers have left.
	renewAhead = 64

	// renewStall is how long a stream with waiting renewals may be silent before it is replaced.
	renewStall = time.Second
)

// openStream opens a keepalive stream.
type openStream func(context.Context) (keepAliveStream, error)

type keepAliveStream interface {
	Send(*pb.LeaseKeepAliveRequest) error
	Recv() (*pb.LeaseKeepAliveResponse, error)
}

// streamRenewer multiplexes renewals over a few keepalive streams. clientv3's KeepAlive keeps
// renewing for clients that are gone, and its KeepAliveOnce opens a stream for each call (etcd
// #13536).
type streamRenewer struct {
	streams [renewStreams]*renewStream
}

func newStreamRenewer(ctx context.Context, open openStream) *streamRenewer {
	r := &streamRenewer{}
	for i := range r.streams {
		r.streams[i] = &renewStream{ctx: ctx, open: open}
	}
	return r
}

// renew retries on a new stream after a broken one, until ctx ends.
func (r *streamRenewer) renew(ctx context.Context, id int64) error {
	stream := r.streams[uint64(id)%renewStreams]
	for {
		err := stream.renew(ctx, id)
		if err == nil || errors.Is(err, errLeaseGone) || ctx.Err() != nil {
			return err
		}
		if store.Pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// close waits for the tasks of all streams; their contexts have ended.
func (r *streamRenewer) close() {
	for _, s := range r.streams {
		s.tasks.Wait()
	}
}

// renewStream is one stream at a time. It is opened on demand and replaced when it breaks or
// stalls.
type renewStream struct {
	ctx  context.Context
	open openStream

	mu      sync.Mutex
	current *renewSession
	tasks   sync.WaitGroup
}

var (
	errStalled = errors.New("the keepalive stream does not answer")
	errBacklog = errors.New("too many renewals are waiting to be sent")
)

func (s *renewStream) renew(ctx context.Context, id int64) error {
	session, err := s.session()
	if err != nil {
		return err
	}
	r := &renewal{ctx: ctx, id: id, answer: make(chan error, 1)}
	select {
	case session.queue <- r:
	default:
		return errBacklog
	}
	stall := time.NewTimer(renewStall)
	defer stall.Stop()
	for {
		select {
		case err := <-r.answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-session.ctx.Done():
			return context.Cause(session.ctx)
		case <-stall.C:
			silent := session.silent()
			if silent >= renewStall {
				session.end(errStalled)
				return errStalled
			}
			stall.Reset(renewStall - silent)
		}
	}
}

// session returns the live session, or a new one.
func (s *renewStream) session() (*renewSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.ctx.Err() == nil {
		return s.current, nil
	}
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	session := newRenewSession(s.ctx)
	s.current = session
	s.tasks.Go(func() { session.run(s.open) })
	return session, nil
}

// renewal is a call that waits for its answer.
type renewal struct {
	ctx    context.Context //nolint:containedctx // of the call: one that has ended is not sent
	id     int64
	answer chan error
}

// renewSession is the life of one stream.
type renewSession struct {
	ctx   context.Context //nolint:containedctx // ends with the stream, and says why
	end   context.CancelCauseFunc
	queue chan *renewal // to send
	ahead chan struct{} // one for each that is sent and not answered

	mu       sync.Mutex
	sent     map[int64][]*renewal // by lease; each will have an answer
	answered time.Time            // time of the last answer, or of the session's start
}

func newRenewSession(ctx context.Context) *renewSession {
	ctx, end := context.WithCancelCause(ctx)
	return &renewSession{
		ctx: ctx, end: end, queue: make(chan *renewal, renewBacklog),
		ahead: make(chan struct{}, renewAhead), sent: map[int64][]*renewal{}, answered: time.Now(),
	}
}

// run opens the stream, which takes until a member answers, and passes answers on until it ends.
// Calls do not wait for run but for their own answers, and end a session that stalls.
func (s *renewSession) run(open openStream) {
	stream, err := open(s.ctx)
	if err != nil {
		s.end(err)
		return
	}
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { s.write(stream) })
	for {
		resp, err := stream.Recv()
		if err != nil {
			s.end(err)
			return
		}
		if resp.TTL > 0 {
			s.pass(resp.ID, nil)
		} else {
			s.pass(resp.ID, errLeaseGone)
		}
	}
}

func (s *renewSession) write(stream keepAliveStream) {
	for {
		select {
		case s.ahead <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		r := s.next()
		if r == nil {
			return
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: r.id}); err != nil {
			s.end(err)
			return
		}
	}
}

// next returns the next renewal for which a call still waits, or nil when the session has ended.
func (s *renewSession) next() *renewal {
	for {
		select {
		case r := <-s.queue:
			if r.ctx.Err() != nil {
				continue
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent[r.id] = append(s.sent[r.id], r)
			return r
		case <-s.ctx.Done():
			return nil
		}
	}
}

// pass passes an answer on. Answers about one lease come in the order of the requests.
func (s *renewSession) pass(id int64, result error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent[id]
	if len(sent) == 0 {
		return
	}
	s.answered = time.Now()
	sent[0].answer <- result
	if s.sent[id] = sent[1:]; len(sent) == 1 {
		delete(s.sent, id)
	}
	<-s.ahead
}

// silent returns the time since the last answer.
func (s *renewSession) silent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.answered)
}
