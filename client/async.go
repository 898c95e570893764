package client

import (
	"context"

	"github.com/fencepost/fencepost/api"
)

// Pending is an entry in the queue of a lock. Its grant has to be claimed within a TTL: by
// [Pending.Wait], or by [Client.Claim] where a callback reports it. Otherwise the lock passes to
// the next in line. One goroutine at a time may use it.
type Pending struct{ a *acquisition }

// AsyncAcquire queues for a lock and returns at once; the lock may also be granted at once. The
// servers keep the entry without a connection, for as long as its Wait. If callbackURL is not
// empty, they report the grant there, or the end of the entry, signed with the tenant's callback
// secret. TTL has to be at least 15 s. If it fails, it takes back in the background what it may
// have left in the queue.
func (c *Client) AsyncAcquire(
	ctx context.Context, name, callbackURL string, options Options,
) (*Pending, error) {
	a := c.newAcquisition(target{name: name}, options.withDefaults())
	a.async, a.callback = true, callbackURL
	return a.pend(ctx)
}

// Queue is AsyncAcquire for an entry that ends with this process: while no [Pending.Wait] runs,
// nothing renews it, and it expires after a TTL.
func (c *Client) Queue(ctx context.Context, name string, options Options) (*Pending, error) {
	return c.newAcquisition(target{name: name}, options.withDefaults()).pend(ctx)
}

func (a *acquisition) pend(ctx context.Context) (*Pending, error) {
	c := a.client
	a.joins = !a.async
	err := a.call(func() error { return c.repeat(ctx, c.within(c.config.RetryFor), a.next) })
	if err != nil {
		return nil, err
	}
	a.joins = false
	return &Pending{a}, nil
}

// ID of the entry, as callbacks and events have it.
func (p *Pending) ID() string { return p.a.entry.ID }

// Wait waits for the grant and claims it; leave that to [Client.Claim] where there is a callback.
// If ctx ends first, the entry keeps its position, and you can Wait again. The error is a
// [LostError] if the grant was not claimed in time.
func (p *Pending) Wait(ctx context.Context) (*Held, error) { return p.a.run(ctx) }

// Leave leaves the queue, or releases a grant that was not claimed. It tries for one TTL.
func (p *Pending) Leave(ctx context.Context) error {
	a := p.a
	if a.entry.Token == "" && !a.unknown {
		return nil
	}
	a.joins = true
	err := a.client.repeat(ctx, a.client.within(a.ttl()), a.leave)
	if CodeOf(err) == api.Lost {
		return nil
	}
	return err
}

// Claim takes the grant that a callback reported, see [VerifyWebhook], and renews the lock from
// then on. It returns a [LostError] if the lock has passed on meanwhile, or the event is no grant.
// Of options it uses Margin, OnReleaseRequested and AtLeast, from now on.
//
// A callback may come twice. Pass over an event whose ID you have seen: two claims of one grant
// would both count as its holder.
func (c *Client) Claim(ctx context.Context, event *api.Event, options Options) (*Held, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	data := event.Data
	of := target{name: data.Lock}
	if of.name == "" {
		claims := make([]Claim, 0, len(data.Locks))
		for _, name := range data.Locks {
			claims = append(claims, Claim{Name: name})
		}
		of = setOf(claims)
	}
	if event.Type != "lock.acquired" || data.Entry == nil || data.Entry.Token == "" {
		return nil, &LostError{Name: of.name, Reason: ReasonNotGranted}
	}
	options.Wait = data.Entry.TTLSeconds.Duration() // it can be claimed for so long
	a := c.newAcquisition(of, options)
	a.async = true
	a.entry = entry{
		ID: data.Entry.ID, State: stateHeld, Token: data.Entry.Token, TTLSeconds: data.Entry.TTLSeconds,
	}
	return a.run(ctx)
}
