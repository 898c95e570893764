package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Value is everything in an entry except its key and its number, in the form in which stores keep
// it. It is JSON, so that a person with etcdctl or zkCli can read a queue. All stores share the
// form, so that a statement about one holds for the others.
type Value struct {
	// if the store does not keep it elsewhere
	Handle   int64             `json:"handle,omitempty"`
	Mode     lock.Mode         `json:"mode,omitempty"` // of an entry with one claim
	Limit    int               `json:"limit,omitempty"`
	Permits  int               `json:"permits,omitempty"` // as of a [ValueClaim]
	Claims   []ValueClaim      `json:"claims,omitempty"`  // of a set
	Any      int               `json:"any,omitempty"`     // see [lock.Entry.Any]
	Order    []int             `json:"order,omitempty"`
	Holder   string            `json:"holder"`
	Named    bool              `json:"named,omitempty"`
	Subject  string            `json:"subject,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	TTL      int64             `json:"ttl_ms"`
	Enqueued int64             `json:"enqueued_ms"`
	Until    int64             `json:"wait_until_ms,omitempty"`
	Request  string            `json:"request,omitempty"`
	Async    bool              `json:"async,omitempty"`
	Newest   bool              `json:"only_newest,omitempty"`
	Callback *ValueCallback    `json:"callback,omitempty"`
	Ask      *ValueAsk         `json:"request_release,omitempty"`
	Trace    string            `json:"trace,omitempty"`
}

// ValueAsk is what an entry asks of the holders.
type ValueAsk struct {
	Within int64 `json:"within_ms"`
}

// ValueCallback is the URL that receives an entry's grant.
type ValueCallback struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // its id
}

// ValueClaim is one lock of a set. One permit of a semaphore is left out.
type ValueClaim struct {
	Name    string    `json:"name"`
	Mode    lock.Mode `json:"mode"`
	Limit   int       `json:"limit,omitempty"`
	Permits int       `json:"permits,omitempty"`
}

func valueClaim(c lock.Claim) ValueClaim {
	if c.Permits == 1 {
		c.Permits = 0
	}
	return ValueClaim(c)
}

func valueClaims(claims []lock.Claim) []ValueClaim {
	all := make([]ValueClaim, len(claims))
	for i, c := range claims {
		all[i] = valueClaim(c)
	}
	return all
}

func (c ValueClaim) claim() lock.Claim {
	if c.Mode == lock.Semaphore && c.Permits == 0 {
		c.Permits = 1
	}
	return lock.Claim(c)
}

// claimsOf returns the claims of a set, or else the one of an entry that is no set.
func claimsOf(set []ValueClaim, one ValueClaim) []lock.Claim {
	if len(set) == 0 {
		return []lock.Claim{one.claim()}
	}
	claims := make([]lock.Claim, len(set))
	for i, c := range set {
		claims[i] = c.claim()
	}
	return claims
}

// Key is what a store's key states about an entry: Lock is one of its locks, or
// [lock.PoolHome] for an entry with [lock.Entry.Any].
type Key struct {
	Tenant, Lock string
	ID           lock.ID
}

// ValueOf returns the stored form of e.
func ValueOf(e *lock.Entry) *Value {
	v := &Value{
		Holder: e.Holder, Named: e.Named, Subject: e.Subject, Metadata: e.Metadata, Request: e.Request,
		TTL: e.TTL.Milliseconds(), Enqueued: e.EnqueuedAt.UnixMilli(),
		Any: e.Any, Order: e.Order, Newest: e.OnlyNewest,
		Async: e.Async, Callback: (*ValueCallback)(e.Callback), Trace: e.Trace,
	}
	if e.AskWithin != nil {
		v.Ask = &ValueAsk{e.AskWithin.Milliseconds()}
	}
	if !e.WaitUntil.IsZero() {
		v.Until = e.WaitUntil.UnixMilli()
	}
	if !e.Set {
		c := valueClaim(e.Claims[0])
		v.Mode, v.Limit, v.Permits = c.Mode, c.Limit, c.Permits
		return v
	}
	v.Claims = valueClaims(e.Claims)
	return v
}

// ParseValue parses the value of an entry's key. An error reports that it is no entry, or that no
// replica can have written it.
func ParseValue(key Key, data []byte) (*Value, error) {
	v := &Value{}
	if !v.scan(data) {
		*v = Value{}
		if err := json.Unmarshal(data, v); err != nil {
			return nil, err
		}
	}
	if err := v.Check(key); err != nil {
		return nil, err
	}
	return v, nil
}

// Check returns why no replica can have written this for key, or nil.
func (v *Value) Check(key Key) error {
	if err := v.checkCallback(); err != nil {
		return err
	}
	if v.TTL <= 0 || v.TTL > lock.MaxTTL.Milliseconds() {
		return fmt.Errorf("a TTL of %d ms", v.TTL)
	}
	claims := v.claims(key)
	if err := lock.CheckClaims(claims, len(v.Claims) > 0); err != nil {
		return err
	}
	if !lock.IsCanonical(claims) {
		return errors.New("claims that are out of order")
	}
	return v.checkPool(key, claims)
}

// checkPool checks how many of the claims the entry asks for, and that its key is that of its home.
func (v *Value) checkPool(key Key, claims []lock.Claim) error {
	order := 0 // its length
	if v.Any > 0 && v.Any < len(claims) {
		order = len(claims)
	}
	home := slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name == key.Lock })
	if v.Any > 0 {
		home = key.Lock == lock.PoolHome
	}
	switch {
	case !home:
		return fmt.Errorf("claims that are not of %s", key.Lock)
	case v.Any < 0 || v.Any > len(v.Claims):
		return fmt.Errorf("any %d of %d locks", v.Any, len(v.Claims))
	case len(v.Order) != order:
		return fmt.Errorf("an order of %d locks, want %d", len(v.Order), order)
	}
	for i, at := range slices.Sorted(slices.Values(v.Order)) {
		if i != at {
			return errors.New("an order that does not name each lock once")
		}
	}
	return nil
}

func (v *Value) checkCallback() error {
	switch {
	case v.Callback == nil:
		return nil
	case !v.Async:
		return errors.New("a callback of an entry that is not kept")
	}
	return (*lock.Callback)(v.Callback).Check()
}

// claims returns the claims of the entry at key.
func (v *Value) claims(key Key) []lock.Claim {
	return claimsOf(v.Claims, ValueClaim{key.Lock, v.Mode, v.Limit, v.Permits})
}

// Entry returns the entry at key that was written at number.
func (v *Value) Entry(key Key, number uint64) *lock.Entry {
	e := &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: v.claims(key), Set: len(v.Claims) > 0, Holder: v.Holder,
		Named: v.Named, Subject: v.Subject, Metadata: v.Metadata, Request: v.Request,
		TTL: time.Duration(v.TTL) * time.Millisecond, EnqueuedAt: time.UnixMilli(v.Enqueued).UTC(),
		Any: v.Any, Order: v.Order, OnlyNewest: v.Newest,
		Number: number, Handle: v.Handle, Async: v.Async, Callback: (*lock.Callback)(v.Callback),
	}
	if lock.ValidTrace(v.Trace) { // another version may write others; it only describes the entry
		e.Trace = v.Trace
	}
	if v.Ask != nil {
		within := time.Duration(v.Ask.Within) * time.Millisecond
		within = min(max(within, 0), lock.MaxAskWithin)
		e.AskWithin = &within
	}
	if v.Until != 0 {
		e.WaitUntil = time.UnixMilli(v.Until).UTC()
	}
	return e
}

// damagedTTL is the lease of an unreadable entry.
const damagedTTL = time.Minute

// Damaged represents an unreadable entry. It keeps its position, alone, so that no other entry is
// granted together with its holder. It expires unless its holder renews it.
func Damaged(key Key, number uint64, handle int64) *lock.Entry {
	return &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},
		Opaque: true, Holder: "unreadable", TTL: damagedTTL,
		EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond), Number: number, Handle: handle,
	}
}

// End is one recorded removal; several share a key.
type End struct {
	ID     lock.ID     `json:"id"`
	Tenant string      `json:"tenant,omitempty"`
	Reason lock.Reason `json:"reason"`
	At     int64       `json:"at_ms"`

	Was  json.RawMessage `json:"was,omitempty"` // see [Past]
	Note *ValueNote      `json:"note,omitempty"`
}

// ParseReasons parses a record of ends. It may leave out what they say about their entries.
func ParseReasons(data []byte) (ends []End, err error) {
	if ends, ok := scanEnds(data); ok {
		return ends, nil
	}
	err = json.Unmarshal(data, &ends)
	return ends, err
}

// ValueNote is an operator's note on an end.
type ValueNote struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Ended returns what the feed reports about it, with the fence floor.
func (e End) Ended(floor uint64) Ended {
	return Ended{
		ID: e.ID, Tenant: e.Tenant, Reason: e.Reason, At: time.UnixMilli(e.At), Was: Past{e.Was, floor},
		Note: (*lock.Note)(e.Note),
	}
}

// Encode returns the JSON of a value that can be encoded. It does not escape for HTML, which
// would turn one byte into six.
func Encode(v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("bug: %T cannot be encoded: %v", v, err))
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
