package handlers

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
)

const (
	// anonymousRefusals is how many refusals a second an address gets at once while nobody knows who asks,
	// and how many answers of those that everybody gets. All clients behind a proxy that is not trusted have
	// one address, so it is more than many of them come to by mistake, and takes a few hundredths of a
	// processor.
	anonymousRefusals = 300

	// maxAnonymousNetworks is how many addresses are remembered. Nobody is forgotten who was refused within the
	// last second while there is room.
	maxAnonymousNetworks = 10_000

	// introduced is for how long an address is none that the log has not seen.
	introduced = time.Minute
)

// anonymousNetworks are the addresses from which requests come that are answered or refused while nobody knows
// whose they are. These count against no rate of a tenant, and nothing else bounds how fast they are asked.
type anonymousNetworks struct {
	mu        sync.Mutex
	byNetwork map[netip.Prefix]*anonymousNetwork
	swept     time.Time
}

// anonymousNetwork is one of them.
type anonymousNetwork struct {
	limiter *rate.Limiter
	told    time.Time // when the log had a line because nobody knew the address
}

func newAnonymousNetworks() *anonymousNetworks {
	return &anonymousNetworks{byNetwork: map[netip.Prefix]*anonymousNetwork{}}
}

// come counts a request. It returns false if there were too many of the address within the last second.
func (s *anonymousNetworks) come(addr netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return s.of(addr, now).limiter.AllowN(now, 1)
}

// isNew reports whether the log has not been told of the address for a while, and notes that it is.
func (s *anonymousNetworks) isNew(addr netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	one := s.of(addr, now)
	if !one.told.IsZero() && now.Sub(one.told) < introduced {
		return false
	}
	one.told = now
	return true
}

// of finds what is known of an address. The caller holds mu.
func (s *anonymousNetworks) of(addr netip.Addr, now time.Time) *anonymousNetwork {
	network := networkOf(addr)
	one := s.byNetwork[network]
	if one == nil {
		s.makeRoom(now)
		one = &anonymousNetwork{limiter: rate.NewLimiter(anonymousRefusals, anonymousRefusals)}
		s.byNetwork[network] = one
	}
	return one
}

// networkOf is what one client has to itself: an address, or with IPv6 all that begin as it does.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, err := addr.Prefix(bits)
	if err != nil { // there is no address: those without share one
		return netip.Prefix{}
	}
	return network
}

// makeRoom forgets whom forgetting gives nothing. If there is nobody of whom that is true, somebody is
// forgotten.
func (s *anonymousNetworks) makeRoom(now time.Time) {
	quota.MakeRoom(s.byNetwork, maxAnonymousNetworks, &s.swept, now, func(one *anonymousNetwork) bool {
		return one.limiter.TokensAt(now) >= anonymousRefusals
	})
}

// open has a handler answer everybody, and who asks on and on a little later.
func (a *endpoints) open(h handler) gin.HandlerFunc {
	return a.handle(func(r *request) error {
		r.pace(a.visitors)
		return h(r)
	})
}

// pace holds back the answer to a client that asks on and on and of whom nobody knows who it is.
func (r *request) pace(among *anonymousNetworks) {
	if !among.come(r.address()) {
		r.holdBack(1)
	}
}

// strange reports whether the request was refused before anybody knew whose it is.
func (r *request) strange(status int) bool {
	return r.principal == nil && status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// silenced reports whether the log has enough of requests like this one, of which nobody knows whose
// it is. If it is to have this one, how many had no line is noted. Errors all have one.
func (r *request) silenced(status int) bool {
	if r.principal != nil || status >= http.StatusInternalServerError {
		return false
	}
	among := r.endpoints.anonymous
	if r.refused.status = status; !r.strange(status) {
		among, r.refused.route = r.endpoints.visitors, r.FullPath()
	}
	before, ok := r.endpoints.told.take(r.refused, func() bool { return among.isNew(r.address()) })
	if before > 0 {
		r.note(slog.Int("silenced", before))
	}
	return !ok
}

// linesAtOnce is how many lines the log has at once of requests for one cause. Then it has one a second.
// As many more are there for addresses that it does not know, so that one that asks without end does not
// hide all others.
const linesAtOnce = 100

// cause is what requests have in common that are logged as one. There are as many as the code has names
// for: nothing of it comes from a client.
type cause struct {
	status int
	route  string // of what everybody is answered
	code   lock.Code
	auth   auth.Reason // why who asks is not known; "" unless something was shown for it
}

// lines bound what the log has of answers to nobody who is known: whoever asks without end must not
// fill it.
type lines struct {
	mu      sync.Mutex
	byCause map[cause]*told
}

// told is what was logged of one cause.
type told struct {
	limiter   *rate.Limiter
	newcomers *rate.Limiter
	silenced  int // since the last line
}

func newLines() *lines { return &lines{byCause: map[cause]*told{}} }

// nobodyNew is for [lines.take] where addresses are not told apart.
func nobodyNew() bool { return false }

// take reports whether a request has a line, and how many had none since the one before. isNew says
// whether its address is none that the log knows.
func (l *lines) take(of cause, isNew func() bool) (silenced int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, now := l.byCause[of], time.Now()
	if t == nil {
		t = &told{limiter: rate.NewLimiter(1, linesAtOnce), newcomers: rate.NewLimiter(1, linesAtOnce)}
		l.byCause[of] = t
	}
	if !t.limiter.AllowN(now, 1) && (t.newcomers.TokensAt(now) < 1 || !isNew() || !t.newcomers.AllowN(now, 1)) {
		t.silenced++
		return 0, false
	}
	silenced, t.silenced = t.silenced, 0
	return silenced, true
}
