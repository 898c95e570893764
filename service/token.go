package service

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/lock"
)

// A lock token is "fp1_" and the base64url of
//
//	id (16 bytes) | number (8 bytes) | MAC (24 bytes)
//
// with MAC = HMAC-SHA256(key, tenant, lock or set, id, number), cut to 192 bits. It is derived,
// not stored. Every replica can issue it again for a retry and check it without a store call, and
// no stored record reveals it. It names no lock and no tenant. They come from the request and
// must be the signed ones.
const (
	tokenPrefix  = "fp1_"
	macSize      = 24
	rawTokenSize = lock.IDSize + 8 + macSize
	tokenSize    = len(tokenPrefix) + (rawTokenSize*8+5)/6
)

// MinTokenKey is the shortest key for lock tokens, in bytes.
const MinTokenKey = 32

type tokens struct {
	signers *sync.Pool // of *signer
	form    *base64.Encoding
}

// signer computes MACs without allocating for each.
type signer struct {
	mac    hash.Hash
	text   []byte
	signed []byte // the text of sum
	sum    [sha256.Size]byte
}

func newTokens(key []byte) tokens {
	return tokens{
		signers: &sync.Pool{New: func() any { return &signer{mac: hmac.New(sha256.New, key)} }},
		form:    base64.RawURLEncoding.Strict(),
	}
}

// sign returns the MAC of the text. A server checks a request's token twice in a row, before and
// after it admits the request, and computes the MAC once.
func (s *signer) sign() []byte {
	if !bytes.Equal(s.text, s.signed) {
		s.mac.Reset()
		s.mac.Write(s.text)
		s.mac.Sum(s.sum[:0])
		s.text, s.signed = s.signed, s.text
	}
	return s.sum[:]
}

// setSubject is what the tokens and idempotency keys of sets are bound to, whatever their locks.
// Names cannot contain a slash, so it never equals a lock's name.
const setSubject = "/set"

// subjectOf returns what a token is bound to: a lock's name, or sets.
func subjectOf(e *lock.Entry) string {
	if e.Set {
		return setSubject
	}
	return e.Name()
}

func (t tokens) issue(e *lock.Entry) string {
	raw := e.ID.AppendBytes(make([]byte, 0, rawTokenSize))
	raw = binary.BigEndian.AppendUint64(raw, e.Number)
	mac := t.mac(e.Tenant, subjectOf(e), raw)
	text := append(make([]byte, 0, tokenSize), tokenPrefix...)
	return string(t.form.AppendEncode(text, append(raw, mac[:]...)))
}

// Token returns the proof that an entry belongs to its client, for the message about its grant.
// It depends on the entry's id, tenant, number, and its first lock or that it is a set.
func (x *Entries) Token(e *lock.Entry) string { return x.tokens.issue(e) }

// check returns the entry of a token. A forged token, another lock's and another tenant's return
// the same error.
func (t tokens) check(token, tenant, subject string) (lock.ID, uint64, error) {
	signed, ok := t.signed(token, tenant, subject)
	if !ok {
		return "", 0, errTokenMismatch()
	}
	return lock.IDOf(signed[:lock.IDSize]), binary.BigEndian.Uint64(signed[lock.IDSize:]), nil
}

// signed returns the id and the number of a genuine token.
func (t tokens) signed(token, tenant, subject string) (signed [lock.IDSize + 8]byte, ok bool) {
	text, ok := strings.CutPrefix(token, tokenPrefix)
	// the decoder would ignore line breaks
	if !ok || len(token) != tokenSize {
		return signed, false
	}
	var raw [rawTokenSize]byte
	if n, err := t.form.Decode(raw[:], []byte(text)); err != nil || n != rawTokenSize {
		return signed, false
	}
	mac := raw[len(signed):]
	if want := t.mac(tenant, subject, raw[:len(signed)]); !hmac.Equal(mac, want[:]) {
		return signed, false
	}
	return [lock.IDSize + 8]byte(raw[:]), true
}

// find returns the entry of the request's token. If the token belongs to a set and the URL names
// a lock, the error says where to send it, because the token proves that it was issued.
func (t tokens) find(req TokenRequest) (lock.ID, uint64, error) {
	id, number, err := t.check(req.Token, req.Tenant, req.subject())
	if err == nil || req.Set {
		return id, number, err
	}
	if id, _, of := t.check(req.Token, req.Tenant, setSubject); of == nil {
		err = lock.Errorf(
			lock.TokenMismatch, "the lock token is that of a set; send it to /locksets/%s", id,
		)
	}
	return "", 0, err
}

// Genuine reports whether a replica of this store issued a lock token for the lock, or for a set,
// of the tenant. It reads no store; the entry may be gone.
func (x *Entries) Genuine(req TokenRequest) bool {
	_, genuine := x.tokens.signed(req.Token, req.Tenant, req.subject())
	return genuine
}

func (t tokens) mac(tenant, subject string, signed []byte) (mac [macSize]byte) {
	s := t.signers.Get().(*signer)
	defer t.signers.Put(s)
	s.text = append(appendParts(s.text[:0], tenant, subject), signed...)
	return [macSize]byte(s.sign())
}

func errTokenMismatch() error {
	return lock.Errorf(lock.TokenMismatch, "the lock token does not belong to this entry; "+
		"send the one that its acquire returned")
}

// newID returns a unique id.
func (t tokens) newID(r Rand) lock.ID {
	s := t.signers.Get().(*signer)
	defer t.signers.Put(s)
	s.text = slices.Grow(s.text[:0], lock.IDSize)[:lock.IDSize]
	_, _ = r.Read(s.text) // never fails: crypto/rand ends the program instead
	return lock.IDOf(s.text)
}

// idLabel separates ids from lock tokens, whose signed text begins with a zero.
const idLabel = "fencepost entry id 1"

// idFor returns the id that every replica gives to the entry of an idempotency key. Ids are
// public, and keys may be guessable. Without the token key, an id does not reveal its idempotency
// key.
func (t tokens) idFor(tenant, subject, key string) lock.ID {
	s := t.signers.Get().(*signer)
	defer t.signers.Put(s)
	s.text = appendParts(append(s.text[:0], idLabel...), tenant, subject, key)
	return lock.IDOf(s.sign()[:lock.IDSize])
}

// writeParts writes texts so that no other list of texts gives the same bytes.
func writeParts(w hash.Hash, parts ...string) {
	w.Write(appendParts(nil, parts...))
}

func appendParts(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
