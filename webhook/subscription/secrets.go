package subscription

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// keyLabel keeps what is derived here apart from the lock tokens: what those sign begins
// with a zero.
const keyLabel = "fencepost webhook secrets 1"

// What a secret is for.
const (
	ofSubscription = "subscription"
	ofCallbacks    = "callbacks"
)

// Keys makes the secrets that sign webhooks. They are derived from the key behind the lock
// tokens, which all replicas have, and stored nowhere: what the store holds, a backup
// and a listing have nothing of them. With another key all secrets are other ones.
type Keys struct {
	root func() []byte // a function, because fmt would print bytes
}

// NewKeys returns the keys that a token key comes to.
func NewKeys(tokenKey []byte) Keys {
	mac := hmac.New(sha256.New, tokenKey)
	mac.Write([]byte(keyLabel))
	root := mac.Sum(nil)
	return Keys{func() []byte { return root }}
}

// Of returns the secrets that sign for a subscription: the current one, and those that
// were replaced less than [Overlap] ago.
func (k Keys) Of(s *Subscription, now time.Time) []webhook.Secret {
	return k.all(s.Rotation, now, ofSubscription, s.Tenant, s.ID)
}

// ofCallbacks returns those that sign a tenant's callbacks.
func (k Keys) ofCallbacks(tenant string, r Rotation, now time.Time) []webhook.Secret {
	return k.all(r, now, ofCallbacks, tenant, callbackID)
}

func (k Keys) all(r Rotation, now time.Time, parts ...string) []webhook.Secret {
	var secrets []webhook.Secret
	for _, g := range r.valid(now) {
		secrets = append(secrets, k.secret(g, parts...))
	}
	return secrets
}

func (k Keys) secret(g generation, parts ...string) webhook.Secret {
	var text []byte
	for _, part := range parts { // each with its length, so that no others come to the same
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	mac := hmac.New(sha256.New, k.root())
	mac.Write(append(binary.BigEndian.AppendUint64(text, uint64(g.number)), g.salt...))
	return webhook.SecretOf([sha256.Size]byte(mac.Sum(nil)))
}
