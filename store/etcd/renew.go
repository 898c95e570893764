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
	// renewStreams is over how many streams renewals are spread. A member serves
	// a stream strictly in order, and a renewal of a lease that is expired but not
	// yet revoked holds up all behind it.
	renewStreams = 4

	// renewBacklog is how many renewals may wait to be sent over one stream.
	renewBacklog = 8192

	// renewStall is how long an answer may take before the stream is replaced.
	renewStall = time.Second
)

// openStream opens a keepalive stream.
type openStream func(context.Context) (keepAliveStream, error)

type keepAliveStream interface {
	Send(*pb.LeaseKeepAliveRequest) error
	Recv() (*pb.LeaseKeepAliveResponse, error)
}

// streamRenewer multiplexes renewals over a few keepalive streams of our own.
// clientv3's KeepAlive renews for ever on behalf of clients that are gone, and
// its KeepAliveOnce opens a stream for each call (etcd #13536).
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

// renew tries again on a new stream when one breaks, until ctx ends.
func (r *streamRenewer) renew(ctx context.Context, id int64, _ bool) error {
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

// close waits for the readers of all streams; their contexts have ended.
func (r *streamRenewer) close() {
	for _, s := range r.streams {
		s.readers.Wait()
	}
}

// renewStream is one stream at a time, opened when it is needed and replaced
// when it breaks or stalls.
type renewStream struct {
	ctx  context.Context
	open openStream

	mu      sync.Mutex
	current *renewSession
	readers sync.WaitGroup
}

func (s *renewStream) renew(ctx context.Context, id int64) error {
	session, err := s.session()
	if err != nil {
		return err
	}
	answer, err := session.ask(id)
	if err != nil {
		return err
	}
	stall := time.NewTimer(renewStall)
	defer stall.Stop()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-stall.C:
		session.fail(errStalled)
		return errStalled
	}
}

var errStalled = errors.New("the keepalive stream does not answer")

// session returns the live session, or a new one.
func (s *renewStream) session() (*renewSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.err() == nil {
		return s.current, nil
	}
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	session := &renewSession{
		ctx: ctx, cancel: cancel,
		requests: make(chan int64, renewBacklog), waiting: map[int64][]chan error{},
	}
	s.current = session
	s.readers.Go(func() { session.run(s.open) })
	return session, nil
}

// renewSession is the life of one stream, with the calls that wait for answers.
type renewSession struct {
	ctx      context.Context
	cancel   context.CancelFunc
	requests chan int64

	mu      sync.Mutex
	waiting map[int64][]chan error
	broken  error
}

// ask queues a renewal. One of the same lease that is already on its way began
// before this call and does not count for it.
func (s *renewSession) ask(id int64) (<-chan error, error) {
	answer := make(chan error, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	select {
	case s.requests <- id:
		s.waiting[id] = append(s.waiting[id], answer)
		return answer, nil
	default:
		return nil, errBacklog
	}
}

var errBacklog = errors.New("too many renewals are waiting to be sent")

// run opens the stream, which can take for as long as no member answers, and
// hands out answers until it ends. Callers do not wait for run but for their own
// answers, and end the session when one does not come.
func (s *renewSession) run(open openStream) {
	defer s.cancel()
	stream, err := open(s.ctx)
	if err != nil {
		s.fail(err)
		return
	}
	var writer sync.WaitGroup
	writer.Go(func() { s.write(stream) })
	for {
		resp, err := stream.Recv()
		if err != nil {
			s.fail(err)
			writer.Wait()
			return
		}
		var result error
		if resp.TTL <= 0 {
			result = errLeaseGone
		}
		s.answer(resp.ID, result)
	}
}

func (s *renewSession) write(stream keepAliveStream) {
	for {
		select {
		case id := <-s.requests:
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
				s.fail(err)
				return
			}
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *renewSession) answer(id int64, result error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.waiting[id]
	if len(queue) == 0 {
		return
	}
	queue[0] <- result
	if s.waiting[id] = queue[1:]; len(queue) == 1 {
		delete(s.waiting, id)
	}
}

func (s *renewSession) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// fail ends the session and every call that waits on it.
func (s *renewSession) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	s.broken = err
	s.cancel()
	for _, queue := range s.waiting {
		for _, answer := range queue {
			answer <- err
		}
	}
	s.waiting = nil
}
