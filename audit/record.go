package audit

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// The actions that are on record.
const (
	RevokeEntry = "entry.revoke" // of one lock
	RevokeSet   = "set.revoke"
	CloseLocks  = "locks.close" // the object's locks are a pattern
	OpenLocks   = "locks.open"
	SetQuota    = "quota.set"   // for a tenant
	ResetQuota  = "quota.reset" // to the defaults

	CreateWebhook = webhookActions + "create"
	ChangeWebhook = webhookActions + "change"
	PauseWebhook  = webhookActions + "pause"
	ResumeWebhook = webhookActions + "resume"
	DeleteWebhook = webhookActions + "delete"
	RotateWebhook = webhookActions + "rotate" // its secret, or that of a tenant's callbacks
	TestWebhook   = webhookActions + "test"
	Redeliver     = webhookActions + "redeliver"
)

// Actions returns all of them.
func Actions() []string {
	return []string{
		RevokeEntry, RevokeSet, CloseLocks, OpenLocks, SetQuota, ResetQuota, CreateWebhook,
		ChangeWebhook, PauseWebhook, ResumeWebhook, DeleteWebhook, RotateWebhook, TestWebhook, Redeliver,
	}
}

// webhookActions begins the actions that the scope webhooks:write allows without an operator's.
const webhookActions = "webhook."

// scopeOfUsers allows webhookActions.
const scopeOfUsers = "webhooks:write"

// The results of actions.
const (
	Revoked = "revoked" // the object ended
	Closed  = "closed"  // put on record before: what follows may have failed
	Opened  = "opened"
	Set     = "set"   // likewise
	Reset   = "reset" // likewise
	Asked   = "asked" // likewise, of what is done to a webhook
)

// Who did something, as his request showed it.
type Who struct {
	Subject   string // of the bearer token
	Tenant    string // of the bearer token
	Scope     string // that allowed it
	Address   string // of the client, by the proxies that the server trusts
	Peer      string // of the connection, as the server saw it
	RequestID string // which the client may have chosen

	ServerRequestID string // which the server made
}

// Object is what an action changed: an entry, as it was then, a closure, a tenant's quota, or a
// webhook, with its pattern as the locks.
type Object struct {
	Locks  []string   `json:"locks"`
	Entry  lock.ID    `json:"entry"`
	Holder string     `json:"holder"`
	Fence  uint64     `json:"fence"`
	Held   bool       `json:"held"`            // rather than waited, as the replica saw it that did it
	Until  *time.Time `json:"until,omitempty"` // of a closure

	Quota map[string]int `json:"quota,omitempty"` // limits that were set for a tenant, by their names

	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook is what something was done to, as it was then; of what was made, as it was to be. Nothing
// of it is secret.
type Webhook struct {
	ID       string `json:"id"`       // or "callbacks"
	Receiver string `json:"receiver"` // scheme and host of the URL; "" of callbacks
	// the fields that were to be others, by their names
	Changed  []string `json:"changed,omitempty"`
	Delivery string   `json:"delivery,omitempty"` // that was to be made
	// everything from then on was to be delivered again
	Since *time.Time `json:"since,omitempty"`
}

// Record is one thing that was done.
type Record struct {
	ID     string    // sorts by time
	At     time.Time // by the clock of the replica that did it, to the millisecond
	Tenant string    // whose object it is
	By     Who
	Action string
	Object Object
	Reason string // in the words of who did it
	Result string
}

// form is a record as it is stored.
type form struct {
	Subject   string `json:"subject"`
	Home      string `json:"home"` // the tenant of who did it
	Scope     string `json:"scope"`
	Address   string `json:"address"`
	Peer      string `json:"peer"`
	RequestID string `json:"request_id"`
	ServerID  string `json:"server_request_id"`
	Action    string `json:"action"`
	Object    Object `json:"object"`
	Reason    string `json:"reason"`
	Result    string `json:"result"`
}

// Put names the record by its time and returns how it is written: as one that is new, so
// that it is never written over. Records of a time are kept under a kind of their own.
func (r *Record) Put() store.RecordPut {
	r.At = r.At.UTC().Truncate(time.Millisecond)
	raw := rawID(r.At)
	_, _ = rand.Read(raw[timeSize:]) // never fails: it ends the process rather
	r.ID = string(lock.IDOf(raw))
	return store.RecordPut{
		RecordKey: store.RecordKey{Kind: kindOf(weekOf(r.At)), Tenant: r.Tenant, ID: r.ID},
		Value:     r.value(), Frees: r.frees(),
	}
}

func (r *Record) value() []byte {
	return store.Encode(form{
		Subject: r.By.Subject, Home: r.By.Tenant, Scope: r.By.Scope, Address: r.By.Address,
		Peer: r.By.Peer, RequestID: r.By.RequestID, ServerID: r.By.ServerRequestID, Action: r.Action,
		Object: r.Object, Reason: r.Reason, Result: r.Result,
	})
}

// frees reports whether something is taken out of the store by what is on record, which a full one
// must not prevent.
func (r *Record) frees() bool {
	return slices.Contains(
		[]string{RevokeEntry, RevokeSet, OpenLocks, ResetQuota, DeleteWebhook}, r.Action,
	)
}

// maxLocks is how many locks of a set may be. More in a stored record is not ours.
const maxLocks = lock.MaxSetSize

func parse(of store.Record) (*Record, bool) {
	at, ok := timeOf(of.ID)
	var f form
	if err := json.Unmarshal(of.Value, &f); err != nil || !ok || len(f.Object.Locks) > maxLocks {
		return nil, false
	}
	return &Record{
		ID: of.ID, At: at, Tenant: of.Tenant, Action: f.Action, Object: f.Object, Reason: f.Reason,
		Result: f.Result,
		By: Who{
			Subject: f.Subject, Tenant: f.Home, Scope: f.Scope, Address: f.Address, Peer: f.Peer,
			RequestID: f.RequestID, ServerRequestID: f.ServerID,
		},
	}, true
}

// timeSize is how many bytes of an id are its time in milliseconds since 1970. They come
// first, and the alphabet of ids is in order, so ids sort by time.
const timeSize = 6

// rawID returns the smallest id of a time.
func rawID(at time.Time) []byte {
	raw := binary.BigEndian.AppendUint64(nil, uint64(max(0, at.UnixMilli())))
	return append(raw[8-timeSize:], make([]byte, lock.IDSize-timeSize)...)
}

// timeOf reads when a record with the id was made.
func timeOf(id string) (time.Time, bool) {
	if !lock.ValidID(id) {
		return time.Time{}, false
	}
	raw := lock.ID(id).AppendBytes(nil)
	ms := binary.BigEndian.Uint64(append(make([]byte, 8-timeSize), raw[:timeSize]...))
	return time.UnixMilli(int64(ms)).UTC(), true
}

// Records are kept by weeks: what is too old is found at once. The kinds are used in turn, since a
// store keeps a little of each forever.
const (
	week  = 7 * 24 * time.Hour
	kinds = 16 // more weeks than records are kept for, with some for clocks that differ
)

func weekOf(at time.Time) int64 { return at.UnixMilli() / week.Milliseconds() }

func beginOf(n int64) time.Time { return time.UnixMilli(n * week.Milliseconds()).UTC() }

func kindOf(week int64) string { return fmt.Sprintf("audit-%02d", week%kinds) }

// MayKnow reports whether a principal with these lock names may read the record. It may not read
// a record that also names other locks.
func (r *Record) MayKnow(may func(string) bool) bool {
	return !slices.ContainsFunc(r.Object.Locks, func(name string) bool { return !may(name) })
}
