package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// renewal is one renewal of a lease, and the calls that wait for its answer.
type renewal struct {
	id    int64
	calls []chan<- error
}

func (r *renewal) answer(result error) {
	for _, c := range r.calls {
		c <- result
	}
}

// renewSession is the life of one stream.
type renewSession struct {
	ctx    context.Context
	cancel context.CancelFunc
	queue  chan *renewal // to be sent
	ahead  chan struct{} // one for each that is sent and not answered

	mu       sync.Mutex
	queued   map[int64]*renewal   // by lease
	sent     map[int64][]*renewal // by lease; each has an answer
	answered time.Time            // when the last one was, or the session began
	broken   error
}

func newRenewSession(ctx context.Context) *renewSession {
	ctx, cancel := context.WithCancel(ctx)
	return &renewSession{
		ctx: ctx, cancel: cancel,
		queue: make(chan *renewal, renewBacklog), ahead: make(chan struct{}, renewAhead),
		queued: map[int64]*renewal{}, sent: map[int64][]*renewal{}, answered: time.Now(),
	}
}

// ask queues a renewal. One of the same lease that is not sent yet counts for it too. One that
// is on its way began before this call and does not.
func (s *renewSession) ask(id int64) (chan error, error) {
	answer := make(chan error, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	r := s.queued[id]
	if r == nil {
		r = &renewal{id: id}
		select {
		case s.queue <- r:
			s.queued[id] = r
		default:
			return nil, errBacklog
		}
	}
	r.calls = append(r.calls, answer)
	return answer, nil
}

var errBacklog = errors.New("too many renewals are waiting to be sent")

// leave waits for an answer no more. What nobody waits for is not sent.
func (s *renewSession) leave(id int64, answer chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.queued[id]; r != nil {
		r.calls = slices.DeleteFunc(r.calls, func(c chan<- error) bool { return c == answer })
	}
}

// run opens the stream, which can take for as long as no member answers, and
// hands out answers until it ends. Callers do not wait for run but for their own
// answers, and end the session when none comes any more.
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
		id, ok := s.next()
		if !ok {
			return
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			s.fail(err)
			return
		}
	}
}

// next returns the lease that is to be renewed next, when it may be sent, and false when the
// session has ended.
func (s *renewSession) next() (int64, bool) {
	select {
	case s.ahead <- struct{}{}:
	case <-s.ctx.Done():
		return 0, false
	}
	for {
		select {
		case r := <-s.queue:
			if s.send(r) {
				return r.id, true
			}
		case <-s.ctx.Done():
			return 0, false
		}
	}
}

// send notes that a renewal is sent, unless nobody waits for it.
func (s *renewSession) send(r *renewal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queued, r.id)
	if len(r.calls) == 0 || s.broken != nil {
		return false
	}
	s.sent[r.id] = append(s.sent[r.id], r)
	return true
}

// answer hands out an answer. Those of one lease come in the order in which they were asked for.
func (s *renewSession) answer(id int64, result error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent[id]
	if len(sent) == 0 {
		return
	}
	s.answered = time.Now()
	sent[0].answer(result)
	if s.sent[id] = sent[1:]; len(sent) == 1 {
		delete(s.sent, id)
	}
	<-s.ahead
}

// silent is for how long nothing was answered.
func (s *renewSession) silent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.answered)
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
	for _, r := range s.queued {
		r.answer(err)
	}
	for _, sent := range s.sent {
		for _, r := range sent {
			r.answer(err)
		}
	}
	s.queued, s.sent = nil, nil
}
