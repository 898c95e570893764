package handlers

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
)

const (
	// strangerRefusals is how many refusals a second an address gets at once while nobody knows who asks.
	// All clients behind a proxy that is not trusted have one address, so it is more than many of them come
	// to by mistake, and takes a few hundredths of a processor.
	strangerRefusals = 300

	// maxStrangers is how many addresses are remembered. Nobody is forgotten who was refused within the
	// last second while there is room.
	maxStrangers = 10_000
)

// strangers are the addresses from which requests come that are refused before anybody knows whose they
// are. These count against no rate of a tenant, and nothing else bounds how fast they are asked.
type strangers struct {
	mu        sync.Mutex
	byNetwork map[netip.Prefix]*rate.Limiter
	swept     time.Time
}

func newStrangers() *strangers { return &strangers{byNetwork: map[netip.Prefix]*rate.Limiter{}} }

// refuse counts a refusal. It returns false if there were too many of the address within the last second.
func (s *strangers) refuse(addr netip.Addr) bool {
	network := networkOf(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.byNetwork[network]
	if l == nil {
		s.makeRoom(now)
		l = rate.NewLimiter(strangerRefusals, strangerRefusals)
		s.byNetwork[network] = l
	}
	return l.AllowN(now, 1)
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
func (s *strangers) makeRoom(now time.Time) {
	quota.MakeRoom(s.byNetwork, maxStrangers, &s.swept, now, func(l *rate.Limiter) bool {
		return l.TokensAt(now) >= strangerRefusals
	})
}

// pace holds back the refusal of a client that asks on and on and of whom nobody knows who it is.
func (r *request) pace() {
	addr := clientAddress(r.Request, r.endpoints.TrustedProxies)
	if !r.endpoints.strangers.refuse(addr) {
		r.holdBack()
	}
}

// strange reports whether the request was refused before anybody knew whose it is.
func (r *request) strange(status int) bool {
	return r.principal == nil && status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// silenced reports whether the log has enough of refusals like this one. If it is to have this one, how
// many had no line is noted.
func (r *request) silenced(status int) bool {
	if !r.strange(status) {
		return false
	}
	r.refused.status = status
	before, ok := r.endpoints.refusals.take(r.refused)
	if before > 0 {
		r.note(slog.Int("silenced", before))
	}
	return !ok
}

// linesAtOnce is how many lines the log has at once of refusals for one cause. Then it has one a second.
const linesAtOnce = 100

// cause is what refusals have in common that are logged as one. There are as many as the code has names
// for: nothing of it comes from a client.
type cause struct {
	status int
	code   lock.Code
	auth   auth.Reason // why who asks is not known; "" unless something was shown for it
}

// lines bound what the log has of refusals to nobody who is known: whoever asks without end must not
// fill it.
type lines struct {
	mu      sync.Mutex
	byCause map[cause]*told
}

// told is what was logged of one cause.
type told struct {
	limiter  *rate.Limiter
	silenced int // since the last line
}

func newLines() *lines { return &lines{byCause: map[cause]*told{}} }

// take reports whether a refusal has a line, and how many had none since the one before.
func (l *lines) take(of cause) (silenced int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.byCause[of]
	if t == nil {
		t = &told{limiter: rate.NewLimiter(1, linesAtOnce)}
		l.byCause[of] = t
	}
	if !t.limiter.AllowN(time.Now(), 1) {
		t.silenced++
		return 0, false
	}
	silenced, t.silenced = t.silenced, 0
	return silenced, true
}
