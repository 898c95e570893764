package service

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// AcquireRequest asks for one or several locks. Wait 0 means no wait, TTL 0 the default.
type AcquireRequest struct {
	Tenant   string
	Claims   []lock.Claim
	Set      bool
	Any      int    // of a set: how many of its locks suffice; 0 is all
	Subject  string // of the bearer token
	Holder   string
	Named    bool // the request named the holder
	Metadata map[string]string
	TTL      time.Duration
	Wait     time.Duration
	Hold     time.Duration // bounds how long one request is held open; 0 is MaxHold
	Async    bool          // answer at once; the replicas keep the entry while it waits
	// PrefersAsync makes the request async if it waits and its lease is long enough.
	PrefersAsync bool
	OnlyNewest   bool           // leave the queue when a later such request joins it
	Callback     *lock.Callback // receives the grant of an async entry; nil sends no message
	// AskWithin makes the entry ask the holders to finish within this time, if it has to wait; nil
	// asks for nothing.
	AskWithin *time.Duration

	// W3C traceparent of the request; an invalid one is ignored. A retry may carry another
	Trace string

	// IdempotencyKey makes repeated requests the same entry; "" makes each a new
	// one.
	IdempotencyKey string

	due time.Time // deadline for writing the entry; zero is the store's own
}

// newEntry checks a request against the configured bounds and makes its entry.
func (s *Service) newEntry(asked *AcquireRequest, now time.Time) (*lock.Entry, error) {
	req := *asked
	if req.TTL == 0 {
		req.TTL = s.DefaultTTL
	}
	req.Async = req.Async || req.PrefersAsync && req.Wait > 0 && req.TTL >= MinAsyncTTL
	if err := s.check(req); err != nil {
		return nil, err
	}
	if err := lock.CheckClaims(req.Claims, req.Set); err != nil {
		return nil, err
	}
	req.TTL, req.Wait = wholeMilliseconds(req.TTL), wholeMilliseconds(req.Wait)
	if len(req.Claims) > 1 {
		req.Claims = slices.Clone(req.Claims)
		lock.Canonical(req.Claims)
	}
	if req.Any < 0 || req.Any > len(req.Claims) || req.Any > 0 && !req.Set {
		return nil, lock.Invalid("any", "must be between 1 and the number of locks of a set")
	}
	e := &lock.Entry{
		ID: s.tokens.newID(s.Rand), Tenant: req.Tenant, Claims: req.Claims, Set: req.Set,
		Holder: req.Holder, Named: req.Named, Metadata: req.Metadata, TTL: req.TTL,
		EnqueuedAt: now.UTC().Truncate(time.Millisecond), Async: req.Async, Callback: req.Callback,
		OnlyNewest: req.OnlyNewest,
	}
	e.Choose(req.Any, asked.Claims)
	if req.Named {
		e.Subject = req.Subject
	}
	if lock.ValidTrace(req.Trace) {
		e.Trace = req.Trace
	}
	if req.AskWithin != nil {
		within := wholeMilliseconds(*req.AskWithin)
		e.AskWithin = &within
	}
	if req.Wait > 0 {
		e.WaitUntil = e.EnqueuedAt.Add(req.Wait)
	}
	if req.IdempotencyKey != "" {
		e.ID = s.tokens.idFor(req.Tenant, keyScope(subjectOf(e), req.Subject), req.IdempotencyKey)
		e.Request = fingerprint(req, e.Order)
	}
	return e, nil
}

// keyScope returns the scope of an idempotency key: a lock, or the sets of a subject. A token
// that is limited to names can use any key of a set.
func keyScope(of, subject string) string {
	if of == setSubject {
		return string(appendParts(nil, of, subject))
	}
	return of
}

func (s *Service) check(req AcquireRequest) error {
	switch {
	case req.TTL < s.MinTTL || req.TTL > s.MaxTTL:
		return lock.Invalid(
			"ttl_seconds", "must be between %g and %g", s.MinTTL.Seconds(), s.MaxTTL.Seconds(),
		)
	case req.Wait < 0 || req.Wait > s.MaxWait:
		return lock.Invalid("wait_seconds", "must be between 0 and %g", s.MaxWait.Seconds())
	case req.Async && req.TTL < MinAsyncTTL:
		return lock.Invalid("ttl_seconds", "must be at least %g with async", MinAsyncTTL.Seconds())
	case req.Callback != nil && (!req.Async || req.Callback.Check() != nil):
		return lock.Invalid("callback_url", "must be one that can be kept, of an async request")
	case req.Async && req.Wait == 0:
		return lock.Invalid(
			"wait_seconds", "must be more than 0 with async: it is how long the entry waits",
		)
	}
	if wrong := lock.CheckHolder(req.Holder); wrong != "" {
		return lock.Invalid("holder", "%s", wrong)
	}
	if wrong := lock.CheckMetadata(req.Metadata); wrong != "" {
		return lock.Invalid("metadata", "%s", wrong)
	}
	return req.checkAsk()
}

// wholeMilliseconds rounds up, so that a positive wait never becomes 0.
func wholeMilliseconds(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// fingerprint hashes everything that a retry must repeat. order is that of the claims of a request
// for any of them.
func fingerprint(req AcquireRequest, order []int) string {
	h := sha256.New()
	for _, c := range req.Claims {
		writeParts(h, c.Name, string(c.Mode))
		writeNumber(h, int64(c.Limit))
		if c.Permits > 1 { // as before there were several
			writeParts(h, "permits")
			writeNumber(h, int64(c.Permits))
		}
	}
	writeParts(h, req.Holder)
	for _, k := range slices.Sorted(maps.Keys(req.Metadata)) {
		writeParts(h, k, req.Metadata[k])
	}
	writeNumber(h, int64(req.TTL))
	writeNumber(h, int64(req.Wait))
	if req.Async {
		writeParts(h, "async")
	}
	if req.OnlyNewest {
		writeParts(h, "only_newest")
	}
	if req.Callback != nil { // the secret may be rotated between two attempts
		writeParts(h, "callback", req.Callback.URL)
	}
	if req.AskWithin != nil {
		writeParts(h, "request_release")
		writeNumber(h, int64(wholeMilliseconds(*req.AskWithin)))
	}
	if req.Any > 0 {
		writeParts(h, "any")
		writeNumber(h, int64(req.Any))
		for _, i := range order {
			writeNumber(h, int64(i))
		}
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

func writeNumber(w interface{ Write([]byte) (int, error) }, n int64) {
	_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // a hash never fails
}

// checkAsk returns what is wrong with the request to the holders.
func (r AcquireRequest) checkAsk() error {
	switch {
	case r.AskWithin == nil:
		return nil
	case r.Wait == 0:
		return lock.Invalid("request_release", "needs wait_seconds above 0")
	case *r.AskWithin < 0 || *r.AskWithin > lock.MaxAskWithin:
		return lock.Invalid(
			"request_release.within_seconds", "must be between 0 and %g", lock.MaxAskWithin.Seconds(),
		)
	}
	return nil
}
