package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/api"
)

// maxHold is how long a server keeps a request open that waits.
const maxHold = 50 * time.Second

const stateHeld = "held"

// entry is what a server says of an entry, of one lock or of a set, that waits or holds.
type entry struct {
	ID               string                `json:"id"`
	State            string                `json:"state"`
	Token            string                `json:"token"`
	TTLSeconds       api.Seconds           `json:"ttl_seconds"`
	Fence            uint64                `json:"fence"`
	Locks            []api.HeldSetLock     `json:"locks"`
	ReleaseRequested *api.ReleaseRequested `json:"release_requested"`
}

// acquisition is one acquire from its first request to its grant, over lost answers, replicas
// that drain and requests that end before the wait does.
type acquisition struct {
	client  *Client
	of      target
	options Options
	body    func(api.Terms) any

	begun reading // when the call began
	first reading // when the key was sent first
	key   string
	entry entry // once it is known, with its token

	unknown bool // a request may have written an entry whose token is not known

	async    bool   // the servers keep the entry while its client does not ask for it
	callback string // where they report its grant
	leaves   bool   // the call is over, and its entry is taken back
}

// Lock acquires a lock and waits for it up to options.Wait. The lock is renewed until
// [Held.Release].
//
// If ctx ends while Lock waits, it returns an [Error] with the code [Cancelled], and the request
// leaves the queue in the background. If it did not reach a server, its entry expires with the
// TTL. Other codes: wait_timeout, lock_closed, deadlock, mode_mismatch, and [NoAnswer] after the
// wait and [Config.RetryFor]. The error is a [LostError] if an operator revoked the entry.
//
// ctx also bounds the work: [Held.Context] ends with it.
func (c *Client) Lock(ctx context.Context, name string, options Options) (*Held, error) {
	return c.acquire(ctx, c.lockOf(name, options.withDefaults()))
}

// TryLock acquires a lock if it is free now. If not, the error has the code lock_held.
func (c *Client) TryLock(ctx context.Context, name string, options Options) (*Held, error) {
	options = options.withDefaults()
	options.Wait = 0
	return c.acquire(ctx, c.lockOf(name, options))
}

// LockSet acquires all locks at once, or none. The order of claims does not matter. It fails as
// [Client.Lock] does.
func (c *Client) LockSet(ctx context.Context, claims []Claim, options Options) (*Held, error) {
	return c.acquire(ctx, c.setOf(claims, options.withDefaults()))
}

// TryLockSet acquires all locks if they are free now. If not, the error has the code lock_held.
func (c *Client) TryLockSet(ctx context.Context, claims []Claim, options Options) (*Held, error) {
	options = options.withDefaults()
	options.Wait = 0
	return c.acquire(ctx, c.setOf(claims, options))
}

// Do runs work while it holds the lock, with a context that ends when the lock is lost. Do returns
// the error of the acquire or of work. If work returns nil although the lock was lost, Do returns
// the [LostError]. A failed release is only logged.
func (c *Client) Do(
	ctx context.Context, name string, options Options, work func(context.Context, *Held) error,
) error {
	held, err := c.Lock(ctx, name, options)
	if err != nil {
		return err
	}
	defer func() { _ = held.Release() }() // logged
	if err := work(held.Context(), held); err != nil {
		return err
	}
	return held.Check()
}

func (c *Client) lockOf(name string, options Options) *acquisition {
	return c.newAcquisition(targetOf([]string{name}, false), options, func(t api.Terms) any {
		return &api.AcquireBody{Mode: orNil(options.Mode), Limit: limitOf(options.Limit), Terms: t}
	})
}

func (c *Client) setOf(claims []Claim, options Options) *acquisition {
	names := make([]string, 0, len(claims))
	locks := make([]api.SetClaim, 0, len(claims))
	for _, one := range claims {
		names = append(names, one.Name)
		locks = append(locks, api.SetClaim{
			Name: one.Name, Mode: orNil(one.Mode), Limit: limitOf(one.Limit),
		})
	}
	return c.newAcquisition(targetOf(names, true), options, func(t api.Terms) any {
		return &api.LockSetBody{Locks: locks, Terms: t}
	})
}

func (c *Client) newAcquisition(
	of target, options Options, body func(api.Terms) any,
) *acquisition {
	a := &acquisition{client: c, of: of, options: options, body: body, begun: c.config.clock()}
	a.restart()
	return a
}

// restart makes the next request a new entry.
func (a *acquisition) restart() {
	a.key, a.first, a.entry, a.unknown = rand.Text(), reading{}, entry{}, false
}

func (c *Client) acquire(ctx context.Context, a *acquisition) (*Held, error) {
	held, err := a.run(ctx)
	if err != nil {
		a.leaveLater()
	}
	return held, err
}

// run waits for the grant, and begins to renew it.
func (a *acquisition) run(ctx context.Context) (*Held, error) {
	var since reading
	err := a.client.repeat(ctx, patient(a.left), func(ctx context.Context, base string) (err error) {
		since, err = a.attempt(ctx, base)
		return err
	})
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, cancelled(context.Cause(ctx))
	}
	return a.client.hold(ctx, a.of, &a.entry, a.options, since)
}

// attempt makes one request, and a second one where a grant may be old: that is renewed before it
// counts. It returns when the request was sent from which the lease counts.
func (a *acquisition) attempt(ctx context.Context, base string) (since reading, err error) {
	if a.entry.State != stateHeld {
		if err := a.next(ctx, base); err != nil {
			return since, err
		}
	}
	if since = a.first; a.elapsed(since) > a.ttl()/3 {
		since = a.client.config.clock()
		err = a.confirm(ctx, base)
	}
	return since, err
}

func (a *acquisition) elapsed(since reading) time.Duration {
	return a.client.config.clock().since(since)
}

// terms are what the request says of the entry besides its locks.
func (a *acquisition) terms() api.Terms {
	t := a.options.terms()
	if a.async {
		t.Async = &a.async
	}
	if a.callback != "" {
		t.CallbackURL = &a.callback
	}
	return t
}

// waits is how much of the wait is left.
func (a *acquisition) waits() time.Duration {
	return a.options.Wait - a.elapsed(a.begun)
}

// left is how long the call may still take.
func (a *acquisition) left() time.Duration { return a.waits() + a.client.config.RetryFor }

func (a *acquisition) ttl() time.Duration {
	if ttl := a.entry.TTLSeconds.Duration(); ttl > 0 {
		return ttl
	}
	return a.options.TTL
}

// next makes one attempt to acquire, or to wait on with what was acquired before. Without an
// error the entry holds.
func (a *acquisition) next(ctx context.Context, base string) error {
	sent := a.client.config.clock()
	r := a.request()
	if a.first == (reading{}) {
		a.first = sent
	}
	answer, err := a.client.try(ctx, base, r)
	if err = a.learn(answer, err); err != nil {
		return err
	}
	switch {
	case a.entry.State == stateHeld:
		return nil
	case a.leaves || a.async && r.method == http.MethodPost:
		return nil
	case a.elapsed(sent) < time.Second: // it was to wait
		return &again{error: noAnswer(nil)}
	}
	return &again{error: noAnswer(nil), goes: true}
}

// request is the one that is due: an acquire until the token is known, then one that waits on.
func (a *acquisition) request() *request {
	if a.entry.Token == "" {
		hold := min(a.options.Wait, maxHold)
		if a.async {
			hold = 0
		}
		return &request{
			method: http.MethodPost, path: a.of.acquirePath(), key: a.key, body: a.body(a.terms()),
			timeout: hold + requestTimeout,
		}
	}
	hold := min(max(a.waits(), time.Second), maxHold)
	text := strconv.Itoa(int(wholeSeconds(hold).Seconds()))
	return &request{
		method: http.MethodGet, path: a.of.entryPath(a.entry.ID) + "?wait_seconds=" + text,
		token: a.entry.Token, timeout: hold + requestTimeout,
	}
}

// learn takes from an answer what it says of the entry, and makes of the end of the entry what it
// means for the call.
func (a *acquisition) learn(answer *answer, err error) error {
	if err == nil {
		if e := (entry{}); json.Unmarshal(answer.body, &e) == nil && e.Token != "" {
			a.entry, a.unknown = e, false
			return nil
		}
		return &again{error: noAnswer(errors.New("the answer is no entry"))}
	}
	var problem *Error
	errors.As(err, &problem)
	var failed *again
	if errors.As(err, &failed) {
		a.learnFailed(answer, problem)
		return err
	}
	switch problem.Status {
	case http.StatusConflict, http.StatusGone, http.StatusLocked:
		a.unknown, a.entry = false, entry{} // nothing is left in the queue
	}
	if problem.Code == api.Lost {
		return a.ended(problem)
	}
	return err
}

// learnFailed takes the entry from the answer of a replica that hands it over. Where there is
// none, the request may have written one all the same.
func (a *acquisition) learnFailed(answer *answer, problem *Error) {
	var body struct{ Entry, Set entry }
	if answer != nil && json.Unmarshal(answer.body, &body) == nil {
		for _, e := range []entry{body.Entry, body.Set} {
			if e.Token != "" {
				a.entry, a.unknown = e, false
				a.entry.State = "" // its grant has to be asked for
				return
			}
		}
	}
	if problem.MayHaveTakenEffect == nil || *problem.MayHaveTakenEffect {
		a.unknown = a.unknown || a.entry.Token == "" && problem.Status != http.StatusTooManyRequests
	}
}

// ended says what the end of the entry means for the call. One that expired because no request
// reached a server in time is acquired anew, while the call may still wait.
func (a *acquisition) ended(problem *Error) error {
	switch lost := lostOf(a.of.name, problem); lost.Reason {
	case string(api.TimedOut), string(api.Deadlock), string(api.ModeMismatch):
		problem.Code = api.Code(lost.Reason)
		problem.Title = problem.Code.Title()
		return problem
	case "expired", "unknown":
		if a.async || a.leaves || a.options.Wait > 0 && a.waits() <= 0 {
			return lost
		}
		if a.options.Wait > 0 {
			a.options.Wait, a.begun = wholeSeconds(a.waits()), a.client.config.clock()
		}
		a.restart()
		return &again{error: lost}
	default:
		return lost
	}
}

func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// confirm renews a grant that was waited for: nothing else says for how long it lasts.
func (a *acquisition) confirm(ctx context.Context, base string) error {
	answer, err := a.client.try(ctx, base, renewal(a.of, &a.entry, a.ttl()))
	return a.learn(answer, err)
}

// leaveLater takes back what a failed call may have left in the queue. Nothing does so once the
// lease would be over.
func (a *acquisition) leaveLater() {
	if a.entry.Token == "" && !a.unknown || !a.client.begin() {
		return
	}
	a.leaves = true
	go func() {
		defer a.client.tasks.Done()
		begun := a.client.config.clock()
		left := func() time.Duration { return a.ttl() - a.elapsed(begun) }
		// Without success it expires, one TTL after the last request that waited.
		_ = a.client.repeat(a.client.leaving, patient(left), a.leave)
	}()
}

// leave makes one attempt to release the entry. If its token is not known, the acquire is
// repeated first: the same key is the same entry.
func (a *acquisition) leave(ctx context.Context, base string) error {
	if a.entry.Token == "" {
		if err := a.next(ctx, base); err != nil {
			return err
		}
	}
	_, err := a.client.try(ctx, base, release(a.of, &a.entry))
	return err
}
