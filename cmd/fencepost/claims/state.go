package claims

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

const (
	maxEnded  = 1000               // places that a state remembers
	maxClaims = 200                // of a session
	forgotten = 7 * 24 * time.Hour // after which the state of a session that never ended goes
)

// Claim is an entry of a session: places that it claimed at once.
type Claim struct {
	order
	Places []Place   `json:"places"`
	Read   bool      `json:"read,omitempty"` // shared
	Since  time.Time `json:"since"`          // for people

	// Key is the request's Idempotency-Key: each process that repeats the request gets the same
	// entry, so a killed one leaves none behind that its session cannot renew.
	Key string `json:"key"`

	Entry   string    `json:"entry,omitempty"` // empty while the request is under way
	Token   string    `json:"token,omitempty"`
	Fence   uint64    `json:"fence,omitempty"`
	Checked bool      `json:"checked,omitempty"` // whether others had the places before
	Renewed time.Time `json:"renewed,omitzero"`  // when the last renewal was sent
}

// order is the body of a claim's request.
type order struct {
	Locks  []client.Claim `json:"locks"`
	TTL    float64        `json:"ttl_seconds"`
	Wait   float64        `json:"wait_seconds"`
	Holder string         `json:"holder"`
}

// ended is a place that the session had, with the fence of its claim.
type ended struct {
	Place Place  `json:"place"`
	Fence uint64 `json:"fence"`
}

// state is what the processes of a session share.
type state struct {
	Session string   `json:"session"`
	Purpose string   `json:"purpose,omitempty"`
	Claims  []*Claim `json:"claims,omitempty"`
	Ended   []ended  `json:"ended,omitempty"`
}

// file of a session's state. The session's name may be anything.
func (s *Session) file() string {
	hash := sha256.Sum256([]byte(s.config.Session))
	return filepath.Join(s.folder, hex.EncodeToString(hash[:16])+".json")
}

// update changes the state while no other process does.
func (s *Session) update(change func(*state) error) error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	guard, err := os.OpenFile(
		filepath.Join(s.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600,
	)
	if err != nil {
		return err
	}
	defer func() { _ = guard.Close() }() // nothing was written
	if err := settings.Exclude(guard); err != nil {
		return err
	}
	before, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		s.forget()
	} else if err != nil {
		return err
	}
	st := readState(before)
	st.Session = s.config.Session
	if err := change(st); err != nil {
		return err
	}
	st.Ended = st.Ended[max(0, len(st.Ended)-maxEnded):]
	after, err := json.Marshal(st)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return settings.Replace(s.file(), after)
}

// with changes a claim, if the state still has it, while no other process does.
func (s *Session) with(c *Claim, change func(st *state, now *Claim)) error {
	return s.update(func(st *state) error {
		if now := st.find(c); now != nil {
			change(st, now)
		}
		return nil
	})
}

// readState returns an empty state for a text that no version of this program wrote.
func readState(text []byte) *state {
	st := new(state)
	if json.Unmarshal(text, st) != nil {
		return new(state)
	}
	return st
}

// forget removes the states of sessions that ended without a word long ago.
func (s *Session) forget() {
	for _, path := range s.files() {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > forgotten {
			_ = os.Remove(path)
		}
	}
}

// files of all sessions of the user.
func (s *Session) files() []string {
	all, _ := filepath.Glob(filepath.Join(s.folder, "*.json")) // the pattern is valid
	return all
}

// drop takes a claim out of the state. A place that the session could use is remembered.
func (st *state) drop(c *Claim) {
	st.Claims = slices.DeleteFunc(st.Claims, func(other *Claim) bool { return other.Key == c.Key })
	if !c.Checked {
		return
	}
	st.settle(c)
	for _, p := range c.Places {
		if p.Path != "" {
			st.Ended = append(st.Ended, ended{p, c.Fence})
		}
	}
}

// find returns the claim with the key of c, or nil.
func (st *state) find(c *Claim) *Claim {
	for _, other := range st.Claims {
		if other.Key == c.Key {
			return other
		}
	}
	return nil
}

// covering returns the claim that lets the session use a place, or nil.
func (st *state) covering(p Place, read bool) *Claim {
	for _, c := range st.Claims {
		for _, has := range c.Places {
			if (read || !c.Read) && has.covers(p) && (!c.Read || has == p) {
				return c
			}
		}
	}
	return nil
}

// known returns what the session had of places: a place itself, or places in it.
func (st *state) known(places []Place) (had []ended) {
	for _, p := range places {
		newest := uint64(0)
		for _, e := range st.Ended {
			if e.Place.covers(p) {
				newest = max(newest, e.Fence)
			} else if p.covers(e.Place) {
				had = append(had, e)
			}
		}
		if newest > 0 {
			had = append(had, ended{p, newest})
		}
	}
	return had
}

// settle forgets the ended places that a claim covers.
func (st *state) settle(c *Claim) {
	st.Ended = slices.DeleteFunc(st.Ended, func(e ended) bool {
		return slices.ContainsFunc(c.Places, func(p Place) bool { return p.covers(e.Place) })
	})
}
