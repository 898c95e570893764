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

	// renewAhead is how many renewals are sent over a stream before the first of them is
	// answered. More would only wait at the member, and still have to be done when nobody waits
	// for them any more.
	renewAhead = 64

	// renewStall is for how long a stream may answer nothing, while renewals wait, before it is
	// replaced.
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
	for {
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			session.leave(id, answer)
			return ctx.Err()
		case <-stall.C:
			silent := session.silent()
			if silent >= renewStall {
				session.fail(errStalled)
				return errStalled
			}
			stall.Reset(renewStall - silent)
		}
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
	session := newRenewSession(s.ctx)
	s.current = session
	s.readers.Go(func() { session.run(s.open) })
	return session, nil
}
