package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
)

// register is a resource that checks fences: a write is refused if a later holder
// has been seen, and so is a read if a later writer has.
type register struct {
	mu             sync.Mutex
	value          int
	writer, reader int64 // the greatest fences seen
	writes         int   // that were taken
}

func (r *register) read(fence int64, exclusive bool) (value int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence < r.writer || exclusive && fence < r.reader {
		return 0, false
	}
	if exclusive {
		r.writer = fence
	} else {
		r.reader = max(r.reader, fence)
	}
	return r.value, true
}

func (r *register) write(fence int64, value int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence < r.writer || fence < r.reader {
		return false
	}
	r.writer, r.value, r.writes = fence, value, r.writes+1
	return true
}

// claim is one lock of a request, as it is sent and as it comes back.
type claim struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Limit   int    `json:"limit,omitempty"`
	Permits int    `json:"permits,omitempty"`
	Fence   int64  `json:"fence,omitempty"`
}

type modesGrant struct {
	id     string
	claims []claim
}

// mixed is the test's load: readers and writers of registers, semaphores of several permits and
// limits, and sets of them or any of such a set. Some clients die or come back late.
type mixed struct {
	*stand
	registers map[string]*register
	ops       atomic.Int64 // fenced operations that the registers took
	refused   atomic.Int64 // and those that they refused
	mu        sync.Mutex
	grants    []modesGrant
}

const modesTTL = 2 * time.Second

// TestModes makes clients share and count locks, alone and in sets, while members, leaders and
// replicas are killed. No update may be lost, no two incompatible entries may hold together, and
// nothing may be left.
func TestModes(t *testing.T) {
	length, enough := time.Duration(count(20, 600))*time.Second, int64(count(1_000, 100_000))
	s := &mixed{stand: newStand(t, length+seenWithin+5*time.Minute), registers: map[string]*register{}}
	for i := range 6 {
		s.registers[fmt.Sprint("register:", i)] = &register{}
	}
	nemesis := &drive.Nemesis{Cluster: s.cluster, Replicas: s.replicas, Every: killEvery}
	killed := func() bool { k := nemesis.Killed(); return k.Members+k.Leaders >= 1 && k.Replicas >= 1 }
	ctx, stop := s.until(length, func() bool { return killed() && s.ops.Load() >= enough })
	defer stop()
	broken := make(chan error, 1)
	go func() { broken <- nemesis.Run(ctx) }()
	s.each(func(c *drive.Client) {
		for i := 0; ctx.Err() == nil; i++ {
			s.visit(ctx, c, fmt.Sprintf("%d-%d", c.Number, i))
		}
	})
	if err := <-broken; err != nil {
		t.Fatal(err)
	}
	t.Logf(
		"%d fenced operations, %d refused by their fence, %d grants; %v", s.ops.Load(), s.refused.Load(),
		len(s.grants), nemesis.Killed(),
	)
	if n := s.ops.Load(); n < enough {
		t.Errorf("%d fenced operations, want at least %d for the run to count", n, enough)
	}
	if !killed() {
		t.Errorf("%v: too few for the run to count", nemesis.Killed())
	}
	s.verdict()
}

// visit is one acquisition, what is done under it, and its end.
func (s *mixed) visit(ctx context.Context, c *drive.Client, key string) {
	claims, replica := s.draw(), rand.IntN(2)
	path, body := "/locks/"+claims[0].Name, map[string]any{
		"ttl_seconds":  modesTTL.Seconds(),
		"wait_seconds": 5,
	}
	if len(claims) > 1 {
		path, body["locks"] = "/locksets", claims
	} else {
		body["mode"] = claims[0].Mode
		if claims[0].Limit > 0 {
			body["limit"], body["permits"] = claims[0].Limit, claims[0].Permits
		}
	}
	if len(claims) > 1 && rand.IntN(4) == 0 {
		body["any"] = 1 + rand.IntN(len(claims)-1)
	}
	var a drive.Answer
	for attempt := 0; attempt < 5 && s.ctx.Err() == nil; attempt++ {
		a = c.Ask(
			s.ctx, replica+attempt, http.MethodPost, path, map[string]string{"Idempotency-Key": key}, body,
			5*time.Second,
		)
		if a.Status == http.StatusCreated || a.Status == http.StatusLocked ||
			a.Status == http.StatusGone {
			break
		}
		pause(s.ctx, 20*time.Millisecond)
	}
	if a.Status != http.StatusCreated {
		return
	}
	g := s.note(a, claims)
	s.use(g)
	switch rand.IntN(200) {
	case 0: // dies
		return
	case 1: // was paused for longer than its lease
		pause(s.ctx, modesTTL*3/2)
		s.use(g)
	}
	renew, remove := path+"/renew", path
	if len(claims) > 1 {
		renew, remove = path+"/"+g.id+"/renew", path+"/"+g.id
	}
	token := map[string]string{"Lock-Token": a.Entry.Token}
	if rand.IntN(4) == 0 {
		c.Ask(s.ctx, replica, http.MethodPut, renew, token, nil, 0)
		s.use(g)
	}
	for attempt := range 3 {
		if got := c.Ask(
			s.ctx, replica+attempt, http.MethodDelete, remove, token, nil, 0,
		); got.Status == http.StatusNoContent || got.Status == http.StatusGone {
			return
		}
	}
}

// draw asks for a register or a semaphore, or for two or three of them.
func (s *mixed) draw() []claim {
	all := []claim{
		{Name: "semaphore:2", Mode: "semaphore", Limit: 2, Permits: 1},
		{Name: "semaphore:5", Mode: "semaphore", Limit: 4 + rand.IntN(2), Permits: 1 + rand.IntN(3)},
	}
	for name := range s.registers {
		all = append(all, claim{Name: name, Mode: []string{"exclusive", "shared"}[rand.IntN(2)]})
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:[]int{1, 1, 2, 3}[rand.IntN(4)]]
}

// note records a grant with the fences that it came with.
func (s *mixed) note(a drive.Answer, asked []claim) modesGrant {
	g := modesGrant{id: a.Entry.ID, claims: asked}
	if len(asked) > 1 {
		var set struct {
			Locks []claim `json:"locks"`
		}
		s.must(json.Unmarshal(a.Body, &set))
		g.claims = set.Locks
	} else {
		g.claims[0].Fence = a.Entry.Fence
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, g)
	return g
}

// use reads and writes the registers that were granted.
func (s *mixed) use(g modesGrant) {
	for _, c := range g.claims {
		r := s.registers[c.Name]
		for range 40 {
			if r == nil || !s.step(r, c) {
				break
			}
		}
	}
}

// step adds one to a register, or reads it twice.
func (s *mixed) step(r *register, c claim) bool {
	exclusive := c.Mode == "exclusive"
	value, ok := r.read(c.Fence, exclusive)
	if rand.IntN(8) == 0 {
		pause(s.ctx, time.Millisecond)
	}
	if exclusive {
		ok = ok && r.write(c.Fence, value+1)
	} else if again, still := r.read(c.Fence, false); ok && still && again != value {
		s.t.Errorf("%s: a reader saw %d and then %d", c.Name, value, again)
	}
	if ok {
		s.ops.Add(1)
	} else {
		s.refused.Add(1)
	}
	return ok
}

// verdict holds what was seen against the registers and the store's own history.
func (s *mixed) verdict() {
	for name, r := range s.registers {
		if r.value != r.writes {
			s.t.Errorf("%s is %d after %d writes: updates were lost", name, r.value, r.writes)
		}
	}
	truth, err := s.settled()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, g := range s.grants {
		for _, c := range g.claims {
			if c.Fence != g.claims[0].Fence || !truth.Held(c.Name, g.id, c.Fence) {
				s.t.Errorf(
					"%s was granted %v at %d, and the store never had it hold that", g.id, c, g.claims[0].Fence,
				)
			}
		}
		if !slices.IsSortedFunc(g.claims, func(a, b claim) int { return compare(a.Name, b.Name) }) {
			s.t.Errorf("%v is not in canonical order", g.claims)
		}
	}
	for _, odd := range s.odd.Found() {
		s.t.Error(odd)
	}
	s.readLogs()
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}
