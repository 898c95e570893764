package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// MaxSession is for how long a session lasts at most.
	MaxSession = 12 * time.Hour

	// maxSealed is in bytes: browsers keep cookies of 4096, name and attributes included.
	maxSealed = 3800

	// sessionUse keeps the key of sessions apart from all others that come from the same secret.
	sessionUse = "fencepost dashboard session 2"
)

// Sessions seals the principals of dashboard users into texts for cookies, and opens these again.
// It keeps no state: every replica with the same secret opens the texts of the others, and a
// copied text is valid until it ends. It is safe for concurrent use.
type Sessions struct {
	sealer   *Sealer
	now      func() time.Time
	vouchers []Voucher
}

// Voucher finds out whether the credential that a session began with still counts: [Verifier] for
// bearer tokens, [Claimants] for the claims of an identity provider.
type Voucher interface {
	// vouch returns nil if the credential does not count, or is not one of its own.
	vouch(ctx context.Context, p *Principal) validity
}

// NewSessions returns the sessions of a deployment, whose secret its replicas share. now is
// the clock; nil means [time.Now]. A session ends when none of the vouchers knows its credential.
func NewSessions(secret []byte, now func() time.Time, vouchers ...Voucher) (*Sessions, error) {
	sealer, err := NewSealer(secret, sessionUse)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &Sessions{sealer, now, vouchers}, nil
}

// sealed is what a session says of its principal.
type sealed struct {
	Tenant  string   `json:"t"`
	Subject string   `json:"s"`
	Scopes  []Scope  `json:"c"`
	Locks   []string `json:"l"` // null: no limit
	Expires int64    `json:"e"` // milliseconds since 1970
	Voucher string   `json:"v"` // of the credential that the session began with
}

// Seal begins a session of p, which ends with p or after [MaxSession]. It returns the text
// and who it stands for. An [*Error] says that p has too many name patterns to fit a cookie.
func (s *Sessions) Seal(p *Principal) (string, *Principal, error) {
	in := *p
	if end := s.now().Add(MaxSession); in.Expires.After(end) {
		in.Expires = end
	}
	v := sealed{
		Tenant: in.Tenant, Subject: in.Subject, Scopes: in.Scopes, Expires: in.Expires.UnixMilli(),
		Voucher: in.voucher,
	}
	if in.Locks != nil {
		v.Locks = []string{}
	}
	for _, pattern := range in.Locks {
		v.Locks = append(v.Locks, pattern.String())
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return "", nil, fmt.Errorf("seal a session: %w", err)
	}
	text := s.sealer.Seal(plain)
	if len(text) > maxSealed {
		return "", nil, refuse(TooLarge, "its subject and name patterns are too long for a session")
	}
	return text, &in, nil
}

// Open returns who a text of [Sessions.Seal] stands for. Every error is an [*Error]: the
// session has ended, its credential was withdrawn, or the text is not one of ours.
func (s *Sessions) Open(ctx context.Context, text string) (*Principal, error) {
	plain, ours := s.sealer.Open(text)
	if !ours {
		return nil, errNoSession()
	}
	var v sealed
	if err := json.Unmarshal(plain, &v); err != nil {
		return nil, errNoSession()
	}
	p, err := v.principal(s.now())
	if err != nil {
		return nil, err
	}
	if err := s.vouched(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// vouched has the session's principal end with the credential that the session began with.
func (s *Sessions) vouched(ctx context.Context, p *Principal) error {
	for _, v := range s.vouchers {
		if p.validity = v.vouch(ctx, p); p.validity != nil {
			return nil
		}
	}
	return refuse(Withdrawn, "the credential that the session began with was withdrawn")
}

func (v *sealed) principal(now time.Time) (*Principal, error) {
	p := &Principal{
		Tenant: v.Tenant, Subject: v.Subject, Scopes: v.Scopes, Expires: time.UnixMilli(v.Expires),
		voucher: v.Voucher,
	}
	if !now.Before(p.Expires) {
		return nil, refuse(Expired, "the session has ended")
	}
	p.lasts(p.Expires.Sub(now))
	if v.Locks != nil {
		p.Locks = []Pattern{}
	}
	for _, text := range v.Locks {
		pattern, err := ParsePattern(text)
		if err != nil {
			return nil, errNoSession()
		}
		p.Locks = append(p.Locks, pattern)
	}
	return p, nil
}

func errNoSession() error {
	return refuse(BadSession, "the session is not one of this server's")
}
