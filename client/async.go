package client

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/api"
)

// Pending is an entry that the servers keep in its queue while nobody is connected, for as long
// as its Wait. Its grant has to be claimed within a TTL: by [Pending.Wait], or by [Client.Claim]
// where a callback reports it. Otherwise the lock passes to the next in line.
type Pending struct{ a *acquisition }

// AsyncAcquire queues for a lock and returns at once; the lock may also be granted at once. With a
// callbackURL the servers report the grant there, or the end of the entry, signed with the
// tenant's callback secret; without, leave it empty. TTL has to be at least 15 s.
//
// A grant that is claimed by callback is renewed by [Client.Claim] alone: do not also Wait.
func (c *Client) AsyncAcquire(
	ctx context.Context, name, callbackURL string, options Options,
) (*Pending, error) {
	a := c.lockOf(name, options.withDefaults())
	a.async, a.callback = true, callbackURL
	err := c.repeat(ctx, patient(a.left), a.next)
	if err != nil {
		a.leaveLater()
		return nil, err
	}
	return &Pending{a}, nil
}

// ID of the entry, as callbacks and events have it.
func (p *Pending) ID() string { return p.a.entry.ID }

// Wait waits for the grant and claims it. If ctx ends first, the entry keeps its position, and you
// can Wait again. The error is a [LostError] if the grant was not claimed in time. Do not call it
// from two goroutines at once.
func (p *Pending) Wait(ctx context.Context) (*Held, error) { return p.a.run(ctx) }

// Cancel leaves the queue, or releases a grant that was not claimed.
func (p *Pending) Cancel(ctx context.Context) error {
	a, begun := p.a, p.a.client.config.clock()
	left := func() time.Duration { return a.ttl() - a.elapsed(begun) }
	err := a.client.repeat(ctx, patient(left), a.leave)
	if CodeOf(err) == api.Lost {
		return nil
	}
	return err
}

// Claim takes the grant that a callback reported, see [VerifyWebhook], and renews the lock from then
// on. It returns a [LostError] if the lock has passed on meanwhile, and if the event is no grant.
// Of options it uses Margin and OnReleaseRequested.
//
// A callback may come twice. Pass over an event whose ID you have seen: two holders of one token
// would both count as the holder.
func (c *Client) Claim(ctx context.Context, event *api.Event, options Options) (*Held, error) {
	data := event.Data
	of := targetOf(append(data.Locks, one(data.Lock)...), data.Lock == "")
	if event.Type != "lock.acquired" || data.Entry == nil || data.Entry.Token == "" {
		return nil, &LostError{Name: of.name, Reason: ReasonNotGranted}
	}
	a := c.newAcquisition(of, options, nil)
	a.async = true
	a.entry = entry{
		ID: data.Entry.ID, State: stateHeld, Token: data.Entry.Token, Fence: data.Entry.Fence,
		TTLSeconds: data.Entry.TTLSeconds,
	}
	a.options.Wait = a.ttl() // it can be claimed for so long
	var since reading
	err := c.repeat(ctx, patient(a.waits), func(ctx context.Context, base string) error {
		since = c.config.clock()
		return a.confirm(ctx, base)
	})
	if err != nil {
		return nil, err
	}
	return c.hold(ctx, of, &a.entry, a.options, since)
}

func one(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}
