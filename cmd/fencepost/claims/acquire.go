package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

const (
	maxHold      = 5 * time.Second // of a request that waits; the client gives one 10 s
	grace        = 2 * time.Second // after the wait, for the server's answer that it is over
	checkTimeout = 5 * time.Second
	maxPatterns  = 8 // of a stream of events
)

// TakenError says that another session has a place, or had it.
type TakenError struct {
	Place Place
	By    string    // empty if the server does not know any more
	Since time.Time // zero if that session is only next in line
	Waits bool      // for a claim of this session
	// Changed means that this session has the place again, and the other one had it before.
	Changed bool
}

// Error names the other session, since when, and what to do. It quotes what that session calls
// itself, so that an agent can tell it from the words of this program.
func (e *TakenError) Error() string {
	at := e.Since.Local().Format(time.TimeOnly)
	switch {
	case e.Changed && e.By == "":
		return fmt.Sprintf("your claim of %s had ended, and another session may have changed it: "+
			"read it again, then repeat", e.Place)
	case e.Changed:
		return fmt.Sprintf("your claim of %s had ended, and %q claimed it at %s: read it again, then "+
			"repeat", e.Place, e.By, at)
	case e.Waits:
		return fmt.Sprintf("%s is claimed by %q, which waits for a claim of yours: unclaim that first, "+
			"or finish", e.Place, e.By)
	case e.Since.IsZero():
		return fmt.Sprintf("%s is about to be claimed by %q", e.Place, e.By)
	}
	return fmt.Sprintf("%s is claimed by %q since %s (for %s)", e.Place, e.By, at,
		time.Since(e.Since).Round(time.Second))
}

// IsOffline reports whether no server answered, or none that could serve.
func IsOffline(err error) bool {
	var problem *client.Error
	return errors.As(err, &problem) &&
		(problem.Code == client.NoAnswer || problem.Status >= http.StatusInternalServerError)
}

type granted struct {
	ID    string            `json:"id"`
	State string            `json:"state"`
	Token string            `json:"token"`
	Locks []api.HeldSetLock `json:"locks"`
}

// acquire sends the request of a claim until it is granted or refused. It reports true if the claim
// ended before, so that the call needs another one.
func (s *Session) acquire(
	ctx context.Context, c *Claim, wait time.Duration,
) (again bool, err error) {
	sent := time.Now()
	got, err := s.request(ctx, c, wait)
	switch {
	case err == nil:
		return s.grant(ctx, c, got, sent)
	case IsOffline(err) || client.CodeOf(err) == client.Cancelled:
		return false, err // the next call with the claim's key finds out
	}
	err = errors.Join(err, s.with(c, func(st *state, now *Claim) {
		if now.Entry == "" {
			st.drop(now)
		}
	}))
	if client.CodeOf(err) == api.Lost {
		return true, nil
	}
	return false, s.heldBy(c, err)
}

// request repeats the request of a claim until its answer is final.
func (s *Session) request(
	ctx context.Context, c *Claim, wait time.Duration,
) (got *granted, err error) {
	for end := time.Now().Add(wait + grace); time.Until(end) > 0; {
		hold := math.Ceil(min(time.Until(end), maxHold).Seconds())
		header := http.Header{
			"Idempotency-Key": {c.Key}, "Prefer": {fmt.Sprintf("wait=%.0f", hold)},
		}
		got = new(granted)
		err := s.config.Client.Call(ctx, http.MethodPost, "/locksets", header, c.order, got)
		if IsOffline(err) {
			// Another replica may answer: a look finds it, and the key makes the repeat safe.
			if _, err := s.config.Client.Look(ctx, c.Locks[0].Name); err != nil {
				return nil, err
			}
			err = s.config.Client.Call(ctx, http.MethodPost, "/locksets", header, c.order, got)
		}
		if err != nil || got.State == "held" {
			return got, err
		}
	}
	return nil, errors.New("the server does not end the wait")
}

// grant notes what the server granted. It reports true if the claim was released meanwhile.
func (s *Session) grant(
	ctx context.Context, c *Claim, got *granted, sent time.Time,
) (again bool, err error) {
	if got.ID == "" || got.Token == "" || len(got.Locks) == 0 {
		return false, errors.New("what answered is no server")
	}
	again = true
	err = s.with(c, func(st *state, now *Claim) {
		if again = false; now.Entry != "" { // another process of the session was faster
			return
		}
		now.Entry, now.Token, now.Renewed, now.Fence = got.ID, got.Token, sent, got.Locks[0].Fence
		now.Checked = len(st.known(now.Places)) == 0
	})
	if again && err == nil {
		err = s.send(ctx, http.MethodDelete, &Claim{Entry: got.ID, Token: got.Token}, "")
	}
	return again, err
}

// heldBy names the holder in the way of a claim, if that is why it failed.
func (s *Session) heldBy(c *Claim, cause error) error {
	var problem *client.Error
	if !errors.As(cause, &problem) || problem.Code != api.Deadlock && len(problem.Locks) == 0 {
		return cause
	}
	waits := problem.Code == api.Deadlock
	for _, busy := range problem.Locks {
		for _, h := range busy.Holders {
			theirs := []client.Claim{{Name: busy.Name, Mode: h.Mode}}
			for _, p := range c.Places {
				if !s.isOwn(h.Holder) && conflict(p.locks(c.Read), theirs) {
					since, _ := h.Since.Time()
					return &TakenError{Place: p, By: h.Holder, Since: since, Waits: waits}
				}
			}
		}
	}
	return &TakenError{Place: c.Places[0], By: "another session", Waits: waits}
}

// check returns a [TakenError] for the first place that the session has again after another session
// had it. It reports each once.
func (s *Session) check(ctx context.Context, r Request) error {
	st := s.load()
	for _, p := range r.Places {
		c := st.covering(p, r.Read)
		if c == nil || c.Checked || c.Entry == "" {
			continue
		}
		changed := s.changed(ctx, c, st.known(c.Places))
		c.Checked = true
		if err := s.with(c, func(st *state, now *Claim) {
			now.Checked = true
			st.settle(now)
		}); err != nil {
			return err
		}
		if changed != nil {
			return changed
		}
	}
	return nil
}

// changed reads the events from the end of what the session had to its grant, for an entry of
// another session that excluded it. It returns nil if there was none.
func (s *Session) changed(ctx context.Context, c *Claim, had []ended) error {
	if len(had) == 0 { // another process of the session has checked
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	after, names := c.Fence, []string{}
	for _, e := range had {
		after = min(after, e.Fence)
		for _, l := range e.Place.locks(false) {
			names = append(names, l.Name)
		}
	}
	if len(names) > maxPatterns {
		names = []string{Place{Repo: c.Places[0].Repo, Path: root}.Name() + "*"}
	}
	for event, err := range s.config.Client.Events(ctx, client.EventFilter{
		Types: []string{"lock.acquired"}, Locks: names, After: fmt.Sprintf("%d-0", after),
	}) {
		if err != nil || event.Type == api.EventsMissed {
			break
		}
		if event.Data.Number >= c.Fence {
			return nil
		}
		if i := s.excluded(had, event); i >= 0 {
			at, _ := event.Timestamp.Time()
			return &TakenError{Place: had[i].Place, By: event.Data.Entry.Holder, Since: at, Changed: true}
		}
	}
	return &TakenError{Place: had[0].Place, Changed: true}
}

// excluded returns the index of what an event kept the session away from, or -1.
func (s *Session) excluded(had []ended, event *api.Event) int {
	if event.Data.Entry == nil || s.isOwn(event.Data.Entry.Holder) {
		return -1
	}
	locks := []client.Claim{{Name: event.Data.Lock, Mode: event.Data.Entry.Mode}}
	for _, l := range event.Data.Entry.Locks {
		locks = append(locks, client.Claim{Name: l.Name, Mode: l.Mode})
	}
	return slices.IndexFunc(had, func(e ended) bool {
		return event.Data.Number > e.Fence && conflict(e.Place.locks(false), locks)
	})
}
