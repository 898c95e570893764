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

// Lock acquires a lock and waits for it up to options.Wait. The client renews it until
// [Held.Release].
//
// If ctx ends while Lock waits, it returns an [Error] with the code [Cancelled], and the request
// leaves the queue in the background; if that reaches no server, its entry expires with the TTL.
// Other codes: wait_timeout, lock_closed, deadlock, mode_mismatch, superseded, and [NoAnswer] after
// the wait and [Config.RetryFor]. The error is a [LostError] if an operator revoked the entry.
//
// ctx also bounds the work: [Held.Context] ends with it.
func (c *Client) Lock(ctx context.Context, name string, options Options) (*Held, error) {
	return c.acquire(ctx, target{name: name}, options.withDefaults())
}

// TryLock acquires a lock if it is free now. If not, the error has the code lock_held.
func (c *Client) TryLock(ctx context.Context, name string, options Options) (*Held, error) {
	return c.acquire(ctx, target{name: name}, options.withoutWait())
}

// LockSet acquires all locks at once, or none. The order of claims does not matter. It fails as
// [Client.Lock] does.
func (c *Client) LockSet(ctx context.Context, claims []Claim, options Options) (*Held, error) {
	return c.acquire(ctx, setOf(claims), options.withDefaults())
}

// TryLockSet acquires all locks if they are free now. If not, the error has the code lock_held.
func (c *Client) TryLockSet(ctx context.Context, claims []Claim, options Options) (*Held, error) {
	return c.acquire(ctx, setOf(claims), options.withoutWait())
}

// LockAny acquires any k of the locks: those of claims that are free first, and of these the first
// in the order of claims. It waits in all their queues. [Held.Fences] has the locks that it
// acquired. A k of 0 is 1. It fails as [Client.Lock] does.
func (c *Client) LockAny(
	ctx context.Context, claims []Claim, k int, options Options,
) (*Held, error) {
	return c.acquire(ctx, anyOf(claims, k), options.withDefaults())
}

// TryLockAny acquires any k of the locks if they are free now. If not, the error has the code
// lock_held.
func (c *Client) TryLockAny(
	ctx context.Context, claims []Claim, k int, options Options,
) (*Held, error) {
	return c.acquire(ctx, anyOf(claims, k), options.withoutWait())
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
	defer func() { _ = held.Release(context.WithoutCancel(ctx)) }() // logged
	if err := work(held.Context(), held); err != nil {
		return err
	}
	return held.Check()
}

func (c *Client) acquire(
	ctx context.Context, of target, options Options,
) (held *Held, err error) {
	a := c.newAcquisition(of, options)
	err = a.call(func() (err error) {
		held, err = a.run(ctx)
		return err
	})
	return held, err
}

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

	begun   reading // when the call began
	first   reading // when the key was sent first
	key     string
	entry   entry // once it is known, with its token
	unknown bool  // a request may have written an entry whose token is not known

	async    bool   // the servers keep the entry while its client does not ask for it
	callback string // where they report its grant
	joins    bool   // the next request enqueues the entry and does not wait for its grant
}

func (c *Client) newAcquisition(of target, options Options) *acquisition {
	a := &acquisition{client: c, of: of, options: options, begun: c.config.clock()}
	a.restart()
	return a
}

// restart makes the next request a new entry.
func (a *acquisition) restart() {
	a.key, a.first, a.entry, a.unknown = rand.Text(), reading{}, entry{}, false
}

// call checks the options and makes a call. If that fails, it takes back in the background what it
// may have left in the queue, for at most one TTL. Close waits for both. What it cannot take back
// expires, one TTL after the last request that waited.
func (a *acquisition) call(do func() error) error {
	c := a.client
	if err := a.options.check(); err != nil {
		return err
	}
	if !c.begin() {
		return cancelled(errClosed)
	}
	err := do()
	if err == nil || a.entry.Token == "" && !a.unknown {
		c.tasks.Done()
		return err
	}
	a.joins = true
	go func() {
		defer c.tasks.Done()
		_ = c.attempts(c.leaving, c.within(a.ttl()), a.leave)
	}()
	return err
}

// run waits for the grant, and begins to renew it.
func (a *acquisition) run(ctx context.Context) (*Held, error) {
	var since reading
	err := a.client.repeat(ctx, patient(a.left), func(ctx context.Context, base string) (err error) {
		since, err = a.attempt(ctx, base)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, cancelled(context.Cause(ctx))
	}
	a.first = reading{} // a grant that is waited for again has to be renewed first
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
	if since = a.first; since == (reading{}) || a.elapsed(since) > a.ttl()/3 {
		since = a.client.config.clock()
		err = a.send(ctx, base, renewal(a.of, &a.entry))
	}
	return since, err
}

func (a *acquisition) elapsed(since reading) time.Duration {
	return a.client.config.clock().since(since)
}

// waits is how much of the wait is left.
func (a *acquisition) waits() time.Duration { return a.options.Wait - a.elapsed(a.begun) }

// left is how long the call may still take.
func (a *acquisition) left() time.Duration { return a.waits() + a.client.config.RetryFor }

func (a *acquisition) ttl() time.Duration {
	if ttl := a.entry.TTLSeconds.Duration(); ttl > 0 {
		return ttl
	}
	return a.options.TTL
}

// next makes one attempt to acquire, or to go on waiting. Without an error the entry holds, or
// waits and the call does not.
func (a *acquisition) next(ctx context.Context, base string) error {
	sent := a.client.config.clock()
	if a.first == (reading{}) {
		a.first = sent
	}
	r := a.request()
	err := a.send(ctx, base, r)
	if err != nil || a.entry.State == stateHeld || a.joins || a.async && r.method == http.MethodPost {
		return err
	}
	// One that is answered too soon would be sent in a loop.
	return &again{error: noAnswer(nil), goes: a.elapsed(sent) >= time.Second, stays: true}
}

// request is the one that is due: an acquire until the token is known, then one that waits on.
func (a *acquisition) request() *request {
	hold := min(a.waits(), maxHold)
	if a.entry.Token != "" {
		hold = wholeSeconds(max(hold, time.Second))
		text := strconv.Itoa(int(hold.Seconds()))
		return &request{
			method: http.MethodGet, path: a.of.entryPath(a.entry.ID) + "?wait_seconds=" + text,
			token: a.entry.Token, timeout: hold + requestTimeout, waits: true,
		}
	}
	prefer := ""
	if a.joins { // the token is needed, not the grant
		hold, prefer = 0, "wait=0"
	}
	b := a.options.body(a.of)
	if b.Async, b.CallbackURL = a.async, a.callback; a.async {
		hold = 0
	}
	return &request{
		method: http.MethodPost, path: a.of.path(), key: a.key, prefer: prefer, body: b,
		timeout: max(hold, 0) + requestTimeout, waits: hold > 0,
	}
}

func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// send sends a request about the entry, and takes from its answer what that says of the entry.
func (a *acquisition) send(ctx context.Context, base string, r *request) error {
	e, answer, err := a.client.tryEntry(ctx, base, r)
	if err == nil {
		a.entry, a.unknown = *e, false
		return nil
	}
	var problem *Error
	errors.As(err, &problem)
	switch problem.Status {
	case http.StatusConflict, http.StatusGone, http.StatusLocked:
		if a.unknown = false; !a.async { // of an async entry the servers are asked again
			a.entry = entry{} // nothing is left in the queue
		}
	}
	switch {
	case problem.Code == api.Lost:
		return a.ended(problem)
	case isAgain(err):
		a.learn(answer, problem)
	}
	return err
}

// learn takes the entry from the answer of a replica that hands it over. Where there is none, the
// request may have written one all the same.
func (a *acquisition) learn(answer *answer, problem *Error) {
	var handed struct{ Entry, Set entry }
	if answer != nil && json.Unmarshal(answer.body, &handed) == nil {
		for _, e := range []entry{handed.Entry, handed.Set} {
			if e.Token != "" {
				a.entry, a.unknown = e, false
				a.entry.State = "" // its grant has to be asked for
			}
		}
	}
	effect := problem.MayHaveTakenEffect == nil || *problem.MayHaveTakenEffect
	if a.entry.Token == "" && problem.Status != http.StatusTooManyRequests && effect {
		a.unknown = true
	}
}

// ended decides what the end of the entry means for the call. If the entry expired because no
// request reached a server in time, the call acquires again while it may still wait.
func (a *acquisition) ended(problem *Error) error {
	lost := lostOf(a.of.name, problem)
	switch lost.Reason {
	case string(api.TimedOut), string(api.Deadlock), string(api.ModeMismatch), string(api.Superseded):
		problem.Code = api.Code(lost.Reason)
		problem.Title = problem.Code.Title()
		return problem
	case "expired", "unknown":
	default:
		return lost
	}
	if a.async || a.joins || a.options.Wait > 0 && a.waits() <= 0 {
		return lost
	}
	if a.options.Wait > 0 {
		a.options.Wait, a.begun = wholeSeconds(a.waits()), a.client.config.clock()
	}
	a.restart()
	return &again{error: lost, stays: true}
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
