package memory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Config configures a [Server].
type Config struct {
	// Number is the number of the server's history before its first write.
	Number uint64

	// CallLimit bounds a client's call; 0 is 4 s, as in the adapters.
	CallLimit time.Duration

	// Remember is how long ends are kept; 0 is 11 minutes.
	Remember time.Duration

	// ExpiryRecord is the time from an expiry to its record. Until then the key of the entry is not
	// used up.
	ExpiryRecord time.Duration

	// Together is how long a write waits for others of its client, with which it shares a
	// transaction and its number; 0 is a transaction for each.
	Together time.Duration

	// Observe receives each step of the history as it happens. It must not call the
	// server.
	Observe func(Run)
}

// Run is what happened at one number.
type Run struct {
	Number  uint64
	At      time.Time
	Changes []store.Change
}

// Server is a history: one sequence of writes with their numbers, the resulting entries, and the
// leases that end them. It is safe for concurrent use.
type Server struct {
	cfg Config

	turn sync.Mutex // for a transaction, and for what must not see half of one; before mu

	mu         sync.Mutex
	number     uint64
	entries    map[key]*kept
	records    map[key]*record // of ends
	pasts      store.Pasts
	writers    map[int64]int64  // by client: the number that its attempts must have
	removals   map[Attempt]bool // that took effect
	floor      uint64           // set by an operator
	distrusted uint64           // the number that is missing, or 0
	foreign    bool             // the data belonged to another cluster
	form       int              // of the stored data, see [store.Form]
	clients    int64
	values     values

	joint *joint // the transaction in progress, or nil

	runs    []Run         // since the last compaction
	first   uint64        // the index of runs[0]
	life    int           // counts restores: a feed of an earlier one must list again
	grown   chan struct{} // closed and replaced with every run
	stopped bool
}

// key identifies an entry.
type key struct {
	tenant string
	id     lock.ID
}

func keyOf(e *lock.Entry) key { return key{e.Tenant, e.ID} }

// kept is an entry with its lease.
type kept struct {
	entry lock.Entry
	lease *time.Timer
	end   time.Time
}

// record is a kept end.
type record struct {
	ended  store.Ended
	number uint64 // of the end
	forget *time.Timer
}

// Attempt names one attempt to write something, forever.
type Attempt int64

// NewServer returns an empty server.
func NewServer(cfg Config) *Server {
	if cfg.CallLimit == 0 {
		cfg.CallLimit = 4 * time.Second
	}
	if cfg.Remember == 0 {
		cfg.Remember = 11 * time.Minute
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Run) {}
	}
	return &Server{
		cfg: cfg, number: cfg.Number, entries: map[key]*kept{}, records: map[key]*record{},
		writers: map[int64]int64{}, removals: map[Attempt]bool{}, grown: make(chan struct{}),
		values: newValues(), form: store.Form,
	}
}

// Close stops the server's timers: no lease ends any more.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.stopTimers()
	for _, l := range s.values.lives {
		l.Stop()
	}
}

func (s *Server) stopTimers() {
	for _, k := range s.entries {
		k.lease.Stop()
	}
	for _, r := range s.records {
		r.forget.Stop()
	}
}

// Number returns the number of the last write.
func (s *Server) Number() uint64 {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// Entries returns all entries in the order of their numbers.
func (s *Server) Entries() []*lock.Entry {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(func(*lock.Entry) bool { return true })
}

// Ends returns all kept ends, withdrawals included, in the order of their times.
func (s *Server) Ends() []store.Ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends()
}

// Forget drops all kept ends.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		r.forget.Stop()
	}
	clear(s.records)
}

func (s *Server) ends() []store.Ended {
	all := make([]store.Ended, 0, len(s.records))
	for _, r := range s.records {
		all = append(all, r.ended)
	}
	slices.SortFunc(all, func(a, b store.Ended) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// sorted returns copies of the selected entries, in the order of their numbers.
func (s *Server) sorted(wanted func(*lock.Entry) bool) []*lock.Entry {
	var all []*lock.Entry
	for _, k := range s.entries {
		if wanted(&k.entry) {
			all = append(all, copied(k.entry))
		}
	}
	slices.SortFunc(all, func(a, b *lock.Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func copied(e lock.Entry) *lock.Entry { return &e }

// queue reads a lock's entries.
func (s *Server) queue(r lock.Ref) ([]*lock.Entry, uint64) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(func(e *lock.Entry) bool {
		return e.Tenant == r.Tenant &&
			slices.ContainsFunc(e.Claims, func(c lock.Claim) bool { return c.Name == r.Name })
	}), s.number
}

// find returns exactly the entry e, or nil.
func (s *Server) find(e *lock.Entry) *kept {
	k := s.entries[keyOf(e)]
	if k == nil || k.entry.Number != e.Number || k.entry.Home() != e.Home() {
		return nil
	}
	return k
}
