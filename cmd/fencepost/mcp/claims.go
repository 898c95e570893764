package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/cmd/fencepost/claims"
)

const renewEvery = 10 * time.Second // the claims that are due; the TTL of a hook's may be 30 s

const claimText = `Claim files or folders of a git repository before you change them, so that no
other session does. A claim of a folder covers all in it. This session renews its claims while it
lives. "state" of the answer is:
- claimed: they are yours until you unclaim them. Do it as soon as the work is done.
- busy: another session has "path". Do other work first, or claim again with wait_seconds.
- changed: they are yours, but your earlier claim of "path" had ended, and another session may have
  changed it since. Read it again before you write.`

const unclaimText = `Release claims of files and folders, and of all in them; without paths all of
this session. Paths that were claimed together are released together.`

const claimsText = `List what this session has claimed; with "all", the claims of all sessions on the
repository of the folder in which this server runs; at most 100.`

type claimInput struct {
	Paths   []string `json:"paths" jsonschema:"absolute, or from the folder in which this server runs"`
	Wait    *int     `json:"wait_seconds,omitempty" jsonschema:"0 to 50; 0 by default"`
	Purpose string   `json:"purpose,omitempty" jsonschema:"your task; others see it"`
	Read    bool     `json:"read,omitempty" jsonschema:"share them with others that only read"`
}

type claimed struct {
	State string    `json:"state" jsonschema:"claimed, busy or changed"`
	Path  string    `json:"path,omitempty"`
	By    string    `json:"by,omitempty" jsonschema:"the other session and its task"`
	Since time.Time `json:"since,omitzero" jsonschema:"when the other session claimed it"`
	Lost  []string  `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) claim(ctx context.Context, in claimInput) (*claimed, error) {
	wait, err := waitOf(in.Wait, 0)
	if err != nil {
		return nil, err
	}
	if len(in.Paths) == 0 {
		return nil, errors.New("paths is empty")
	}
	places, err := s.files.Places(in.Paths...)
	if err != nil {
		return nil, err
	}
	err = s.files.Claim(ctx, claims.Request{
		Places: places, Read: in.Read, Wait: wait, Purpose: in.Purpose,
	})
	var taken *claims.TakenError
	switch {
	case err == nil:
		return &claimed{State: "claimed", Lost: s.lost()}, nil
	case !errors.As(err, &taken):
		return nil, err
	}
	state := busy
	if taken.Changed {
		state = "changed"
	}
	return &claimed{state, taken.Place.String(), taken.By, taken.Since, s.lost()}, nil
}

type unclaimInput struct {
	Paths []string `json:"paths,omitempty"`
}

type unclaimed struct {
	Released []string `json:"released"`
	Lost     []string `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) unclaim(ctx context.Context, in unclaimInput) (*unclaimed, error) {
	places, err := s.files.Places(in.Paths...)
	if err != nil {
		return nil, err
	}
	released, err := s.files.Unclaim(ctx, places...)
	return &unclaimed{released, s.lost()}, err
}

type claimsInput struct {
	All bool `json:"all,omitempty" jsonschema:"those of all sessions on this repository"`
}

type claimsFound struct {
	Claims    []claims.Seen `json:"claims"`
	Truncated bool          `json:"truncated,omitempty" jsonschema:"there are more than listed"`
	Lost      []string      `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) claims(ctx context.Context, in claimsInput) (*claimsFound, error) {
	seen, err := s.files.Own(), error(nil)
	if in.All {
		seen, err = s.files.All(ctx, ".")
	}
	return &claimsFound{seen[:min(len(seen), maxList)], len(seen) > maxList, s.lost()}, err
}

// renewClaims renews those of hooks, too. The next use of a claim reports that it was lost.
func (s *session) renewClaims() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		_ = s.files.Renew(s.ctx) // the next tick repeats it
	}
}
