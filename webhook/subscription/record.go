package subscription

import (
	"context"
	"net/url"
	"slices"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
)

// Callbacks stands for the callbacks of a tenant where a subscription has its id.
const Callbacks = "callbacks"

// Actor is who changes something, as what is put on record of it says.
type Actor struct {
	*auth.Principal           // its tenant is the one whose subscriptions it is about
	By              audit.Who // whose own tenant may be another
	Reason          string    // in his words; "" if he gave none
}

// RecordOf returns what is put on record before something is done to a subscription, or with nil to
// a tenant's callbacks.
func RecordOf(who Actor, action string, of *Subscription) *audit.Record {
	r := &audit.Record{
		Tenant: who.Tenant, By: who.By, Action: action, Reason: who.Reason, Result: audit.Asked,
	}
	if of == nil {
		r.Object = audit.Object{Locks: []string{allLocks}, Webhook: &audit.Webhook{ID: Callbacks}}
	} else {
		r.Object = audit.Object{
			Locks: []string{of.Locks}, Webhook: &audit.Webhook{ID: of.ID, Receiver: of.Receiver()},
		}
	}
	return r
}

// Receiver is what is no secret of the URL: its scheme and host. The rest may be one.
func (s *Subscription) Receiver() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// record puts something on record that is done to a subscription.
func (s *Subscriptions) record(
	ctx context.Context, who Actor, action string, of *Subscription,
) error {
	return s.Journal.Put(ctx, RecordOf(who, action, of))
}

// recordChange puts on record what is about to become another.
func (s *Subscriptions) recordChange(
	ctx context.Context, who Actor, c *Change, next *Subscription,
) error {
	changed, action := c.fields(), audit.ChangeWebhook
	if slices.Equal(changed, []string{"paused"}) {
		action, changed = audit.ResumeWebhook, nil
		if *c.Paused {
			action = audit.PauseWebhook
		}
	}
	r := RecordOf(who, action, next)
	r.Object.Webhook.Changed = changed
	return s.Journal.Put(ctx, r)
}

// fields returns the names of what is said.
func (c *Change) fields() (names []string) {
	for _, f := range []struct {
		name string
		said bool
	}{
		{"url", c.URL != nil},
		{"events", c.Events != nil},
		{"locks", c.Locks != nil},
		{"paused", c.Paused != nil},
		{"description", c.Description != nil},
	} {
		if f.said {
			names = append(names, f.name)
		}
	}
	return names
}
