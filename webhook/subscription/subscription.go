package subscription

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// Kind is the kind of the small records of subscriptions.
const Kind = "webhook"

// Subscription selects events of a tenant, and the URL that receives them. It is immutable: a
// writer changes a copy.
type Subscription struct {
	ID     string // random; a [lock.ValidName]
	Tenant string
	URL    string // as a [webhook.Policy] allowed it when it was given

	// Events are the kinds that it receives; nil is all. Every subscription receives
	// events.missed, also if Events lacks it.
	Events []lock.EventKind

	// Locks is an [auth.Pattern]: which names it is about.
	Locks string

	// Within are the patterns of the bearer token that limit the names which the author of
	// Locks may use; nil is all names. They allow all that Locks selects.
	Within []string

	Paused  bool
	Created time.Time

	Description string // in a person's words
	By          string // the sub of the bearer token that made it

	// Enabled counts how often it was set going again. Who disables a subscription
	// remembers at which count, and it is disabled for as long as that stands.
	Enabled int

	// From is the number of the write that made it: it receives later events.
	From uint64

	// Version is that of the record: another one after each write. Earlier are those before it, the
	// last ones of them, in order.
	Version uint64
	Earlier []uint64

	Rotation // of its secret
}

// form is a subscription as it is stored.
type form struct {
	URL        string           `json:"url"`
	Events     []lock.EventKind `json:"events"`
	Locks      string           `json:"locks"`
	Within     []string         `json:"within"`
	Paused     bool             `json:"paused,omitempty"`
	Created    int64            `json:"created_ms"`
	By         string           `json:"by"`
	Generation int              `json:"generation"`
	Rotated    []int64          `json:"rotated_ms,omitempty"`
	Salts      [][]byte         `json:"salts,omitempty"`
	Enabled    int              `json:"enabled,omitempty"`
	About      string           `json:"description,omitempty"`
	Earlier    []uint64         `json:"earlier,omitempty"`
	// 0: the version of the record, which its writer could not know
	From uint64 `json:"from,omitempty"`
}

// encode returns what is stored.
func (s *Subscription) encode() []byte {
	return store.Encode(form{
		URL: s.URL, Events: s.Events, Locks: s.Locks, Within: s.Within, Paused: s.Paused,
		Created: s.Created.UnixMilli(), By: s.By, Generation: s.Generation, Rotated: millis(s.Rotated),
		Salts: s.Salts, Enabled: s.Enabled, From: s.From, About: s.Description, Earlier: s.Earlier,
	})
}

// parse reads a subscription, or says why the record is none.
func parse(r store.Record) (*Subscription, error) {
	var f form
	if err := json.Unmarshal(r.Value, &f); err != nil {
		// the error could show a part of it
		return nil, errors.New("it is not the JSON of a subscription")
	}
	s := &Subscription{
		ID: r.ID, Tenant: r.Tenant, URL: f.URL, Events: f.Events, Locks: f.Locks, Within: f.Within,
		Paused: f.Paused, Created: time.UnixMilli(f.Created).UTC(), By: f.By, Description: f.About,
		Enabled: f.Enabled, From: cmp.Or(f.From, r.Version), Version: r.Version, Earlier: f.Earlier,
		Rotation: rotationOf(f.Generation, f.Rotated, f.Salts),
	}
	return s, s.check()
}

// check returns why no replica can have written the subscription.
func (s *Subscription) check() error {
	if s.URL == "" || len(s.URL) > webhook.MaxURL {
		return errors.New("its URL is missing or too long")
	}
	if s.Generation < 1 {
		return errors.New("it has no secret")
	}
	for _, text := range append([]string{s.Locks}, s.Within...) {
		if _, err := auth.ParsePattern(text); err != nil {
			return errors.New("it has a pattern that is none")
		}
	}
	return nil
}

// maxEarlier is how many earlier versions are remembered: more changes than come within a second,
// which is how late a replica may learn of them.
const maxEarlier = 8

// FirstAfter returns the first version after one, as far as that is remembered.
func (s *Subscription) FirstAfter(version uint64) uint64 {
	for _, v := range s.Earlier {
		if v > version {
			return v
		}
	}
	return s.Version
}

// clone returns a copy that may be changed.
func (s *Subscription) clone() *Subscription {
	c := *s
	c.Events, c.Within, c.Rotated = slices.Clone(s.Events), slices.Clone(s.Within), slices.Clone(
		s.Rotated,
	)
	return &c
}
