package handlers

import (
	"log/slog"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

const (
	// linesAtOnce is how many log lines one cause has at once; then it has one a second.
	linesAtOnce = 100

	// maxCauses bounds the causes that the sampler keeps; over it, it starts again.
	maxCauses = 10_000
)

// cause is what responses have in common that share their log lines.
type cause struct {
	tenant string // "" until it is known
	status int
	route  string // of a success without authentication
	code   lock.Code
	auth   auth.Reason // why a credential was rejected
	quota  string      // that is used up
}

// sampler bounds the log lines that clients can cause without end: of 4xx, and of successes that
// need no authentication. It is safe for concurrent use.
type sampler struct {
	mu      sync.Mutex
	byCause map[cause]*sampled
}

type sampled struct {
	limiter  *rate.Limiter
	silenced int // since the last line
}

func newSampler() *sampler { return &sampler{byCause: map[cause]*sampled{}} }

// take reports whether a response has a line, and how many had none since the one before.
func (s *sampler) take(of cause) (silenced int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byCause[of]
	if one == nil {
		if len(s.byCause) >= maxCauses {
			clear(s.byCause)
		}
		one = &sampled{limiter: rate.NewLimiter(1, linesAtOnce)}
		s.byCause[of] = one
	}
	if !one.limiter.Allow() {
		one.silenced++
		return 0, false
	}
	silenced, one.silenced = one.silenced, 0
	return silenced, true
}

// silenced reports whether the request has no line, because the log has enough of its cause.
func (r *request) silenced(status int) bool {
	success := status < http.StatusBadRequest
	if status >= http.StatusInternalServerError || success && r.principal != nil {
		return false
	}
	r.line.refused.tenant, r.line.refused.status = r.tenant(), status
	if success {
		r.line.refused.route = r.FullPath()
	}
	before, ok := r.endpoints.sampler.take(r.line.refused)
	if before > 0 {
		r.note(slog.Int("silenced", before))
	}
	return !ok
}
