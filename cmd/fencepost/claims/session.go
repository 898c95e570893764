// Package claims lets sessions of agents, or of people, claim files of a repository that they
// share. A claim is a lock set: shared on each folder above a path, exclusive on the path. The
// processes of a session share its claims by a file.
package claims

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

const (
	maxTries     = 4
	maxHolder    = 200 // characters
	briefTTL     = time.Minute
	renewsAtOnce = 8
)

// Config of a session.
type Config struct {
	Client *client.Client
	// Session is its name, shared by all its processes on this machine.
	Session string
	// Repo replaces the id that the remote of a repository gives.
	Repo string
	// TTL is how long a claim lasts without a renewal.
	TTL time.Duration
}

// Session has claims. Its methods may be called by many processes at once.
type Session struct {
	config Config
	folder string // of the states of the user's sessions
	who    string // begins the name of the session as a holder
}

// Open returns a session. It sends no request.
func Open(config Config) (*Session, error) {
	states := os.Getenv("XDG_STATE_HOME")
	if states == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		states = filepath.Join(home, ".local", "state")
	}
	who := fmt.Sprintf("%.80s@%.60s", config.Session, hostname())
	return &Session{config, filepath.Join(states, "fencepost", "claims"), printable(who)}, nil
}

// Name of the session.
func (s *Session) Name() string { return s.config.Session }

// printable drops what a holder's name may not have.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && !unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}

// isOwn reports whether a holder is this session.
func (s *Session) isOwn(holder string) bool {
	return holder == s.who || strings.HasPrefix(holder, s.who+": ")
}

// load reads the state without waiting for processes that change it.
func (s *Session) load() *state {
	text, _ := os.ReadFile(s.file())
	return readState(text)
}

// Request says what to claim.
type Request struct {
	Places []Place
	// Read shares the places with others that only read.
	Read bool
	// Wait is how long to wait for the ends of other sessions' claims.
	Wait time.Duration
	// Purpose is what the session does from now on, for others.
	Purpose string
}

// Claim claims places together, as far as the session has no claims of them, and renews those that
// it has. It returns a [TakenError] if another session has one of them, and once for a place that
// the session had, then another one.
func (s *Session) Claim(ctx context.Context, r Request) error {
	for range maxTries {
		p, err := s.plan(r)
		if err != nil {
			return err
		}
		again, err := s.renew(ctx, p.renew)
		if err != nil {
			return err
		}
		if err := s.release(ctx, p.conflicts); err != nil {
			return err
		}
		for _, c := range p.pending {
			lost, err := s.acquire(ctx, c, r.Wait)
			if err != nil {
				return err
			}
			again = again || lost
		}
		if !again {
			return s.check(ctx, r)
		}
	}
	return &TakenError{Place: r.Places[0], By: s.who}
}

// plan is what a call has to do.
type plan struct {
	renew     []*Claim // because the call needs them, or it is time
	conflicts []*Claim // of this session, to be released first
	pending   []*Claim // to be acquired
}

func (s *Session) plan(r Request) (p plan, err error) {
	err = s.update(func(st *state) error {
		st.Purpose = cmp.Or(r.Purpose, st.Purpose)
		used, missing := map[*Claim]bool{}, []Place{}
		for _, place := range r.Places {
			if c := st.covering(place, r.Read); c != nil {
				used[c] = true
			} else {
				missing = append(missing, place)
			}
		}
		if len(missing) > 0 {
			c, err := s.fresh(st, missing, r)
			if err != nil {
				return err
			}
			p.conflicts = slices.DeleteFunc(slices.Clone(st.Claims), func(other *Claim) bool {
				return other.Entry == "" || !conflict(c.Locks, other.Locks)
			})
			st.Claims, used[c] = append(st.Claims, c), true
		}
		for _, c := range st.Claims {
			switch {
			case used[c] && c.Entry == "":
				p.pending = append(p.pending, c)
			case used[c] || c.isDue():
				p.renew = append(p.renew, c)
			}
		}
		return nil
	})
	return p, err
}

// fresh returns a claim that no request was sent for.
func (s *Session) fresh(st *state, places []Place, r Request) (*Claim, error) {
	locks := union(places, r.Read)
	switch {
	case len(locks) > maxLocks:
		return nil, fmt.Errorf("%d paths need %d locks with their folders, a claim has at most %d: "+
			"claim a folder above them", len(places), len(locks), maxLocks)
	case len(st.Claims) >= maxClaims:
		return nil, fmt.Errorf("this session has %d claims, the most it may: claim a folder in place "+
			"of its files", maxClaims)
	}
	holder := s.who
	if purpose := strings.TrimSpace(printable(st.Purpose)); purpose != "" {
		holder = fmt.Sprintf("%.*s", maxHolder, holder+": "+purpose)
	}
	c := &Claim{
		order:  order{locks, s.config.TTL.Seconds(), r.Wait.Seconds(), holder},
		Places: places, Read: r.Read, Since: time.Now(), Key: rand.Text(),
	}
	if c.isBrief() {
		c.TTL = min(c.TTL, briefTTL.Seconds())
	}
	return c, nil
}

// isBrief reports whether a claim is for one command of git: nothing but the command's end releases
// it before its TTL.
func (c *Claim) isBrief() bool {
	return !c.Read && slices.ContainsFunc(c.Places, func(p Place) bool { return p.Path == "" })
}

// isDue reports whether the claim has to be renewed, also if no call uses it.
func (c *Claim) isDue() bool {
	age := time.Since(c.Renewed).Seconds() // the clock may have been set
	return c.Entry != "" && !c.isBrief() && (age < 0 || age > c.TTL/3)
}

// conflict reports whether there is a lock that two entries cannot hold at once.
func conflict(one, other []client.Claim) bool {
	for _, a := range one {
		for _, b := range other {
			if a.Name == b.Name && (a.Mode != client.Shared || b.Mode != client.Shared) {
				return true
			}
		}
	}
	return false
}

// renew renews claims. It reports whether one was lost.
func (s *Session) renew(ctx context.Context, all []*Claim) (lost bool, err error) {
	if len(all) == 0 {
		return false, nil
	}
	sent, errs := time.Now(), make([]error, len(all))
	var wait sync.WaitGroup
	slots := make(chan struct{}, renewsAtOnce)
	for i, c := range all {
		slots <- struct{}{}
		wait.Go(func() {
			errs[i] = s.send(ctx, http.MethodPut, c, "/renew")
			<-slots
		})
	}
	wait.Wait()
	failed := s.update(func(st *state) error {
		for i, c := range all {
			now := st.find(c)
			switch {
			case client.CodeOf(errs[i]) == api.Lost:
				lost = true
				if now != nil {
					st.drop(now)
				}
			case errs[i] != nil:
				err = errs[i]
			case now != nil:
				now.Renewed = sent
			}
		}
		return nil
	})
	return lost, errors.Join(err, failed)
}

// send sends a request about a claim that is granted.
func (s *Session) send(ctx context.Context, method string, c *Claim, operation string) error {
	header := http.Header{"Lock-Token": {c.Token}}
	return s.config.Client.Call(ctx, method, "/locksets/"+c.Entry+operation, header, nil, nil)
}

// Renew renews the claims that are due, as each call does.
func (s *Session) Renew(ctx context.Context) error {
	due := slices.DeleteFunc(s.load().Claims, func(c *Claim) bool { return !c.isDue() })
	_, err := s.renew(ctx, due)
	return err
}

// Elsewhere returns another session of this user and machine that has one of the places, as far as
// its state says.
func (s *Session) Elsewhere(places []Place) string {
	for _, path := range s.files() {
		text, _ := os.ReadFile(path)
		st := readState(text)
		for _, c := range st.Claims {
			isOver := time.Since(c.Renewed).Seconds() > c.TTL
			if st.Session != s.config.Session && !isOver && conflict(union(places, false), c.Locks) {
				return c.Holder
			}
		}
	}
	return ""
}

// Unclaim releases the claims that have one of the places, or all without places. It returns what
// it released: places that were claimed together are released together.
func (s *Session) Unclaim(ctx context.Context, places ...Place) ([]string, error) {
	gone := slices.DeleteFunc(s.load().Claims, func(c *Claim) bool {
		return len(places) > 0 && !slices.ContainsFunc(c.Places, func(has Place) bool {
			return slices.ContainsFunc(places, func(p Place) bool { return p.covers(has) })
		})
	})
	if err := s.release(ctx, gone); err != nil {
		return nil, err
	}
	released := []string{}
	for _, c := range gone {
		for _, p := range c.Places {
			released = append(released, p.String())
		}
	}
	return released, nil
}

// End releases all claims and forgets the session.
func (s *Session) End(ctx context.Context) error {
	_, err := s.Unclaim(ctx)
	if gone := os.Remove(s.file()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// release releases claims, then drops them from the state: in the other order a killed process
// would leave a claim that its session cannot renew.
func (s *Session) release(ctx context.Context, claims []*Claim) error {
	for _, c := range claims {
		if c.Entry != "" {
			err := s.send(ctx, http.MethodDelete, c, "")
			if err != nil && client.CodeOf(err) != api.Lost {
				return err
			}
		}
		if err := s.with(c, (*state).drop); err != nil {
			return err
		}
	}
	return nil
}
