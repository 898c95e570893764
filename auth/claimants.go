package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Claimants map claims of an identity provider to rights, by a file that is read again. It is
// safe for concurrent use.
//
// The file is JSON: {"principals": [{"claim": "groups", "value": "lock-operators", "tenant":
// "acme", "scopes": ["tenant-admin"], "locks": ["orders:*"]}]}. An entry matches a user whose
// claim equals the value, or is a list that has it. The first matching entry counts.
type Claimants struct {
	keptFile[[]claimant]
}

// claimant is an entry of the file.
type claimant struct {
	claim, value string
	who          *Principal
}

// LoadClaimants reads the file.
func LoadClaimants(file string) (*Claimants, error) {
	c := &Claimants{}
	c.file, c.parse, c.changed = file, parseClaimants, new(signal)
	_, err := c.Refresh()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func parseClaimants(text []byte) (all []claimant, err error) {
	err = principalsOf(text, func(raw json.RawMessage) error {
		var e struct {
			Claim string `json:"claim"`
			Value string `json:"value"`
			rights
		}
		if err := strictly(raw, &e, "claim", "value", "tenant", "scopes", "locks"); err != nil {
			return err
		}
		var unnamed error
		if e.Claim == "" || e.Value == "" || len(e.Claim)+len(e.Value) > maxIdentity {
			unnamed = fmt.Errorf("it needs claim and value, of at most %d bytes", maxIdentity)
		}
		who, err := e.principal()
		who.voucher = claimVoucher(e.Claim, e.Value)
		all = append(all, claimant{e.Claim, e.Value, who})
		return errors.Join(unnamed, err)
	})
	return all, err
}

// Identify returns the principal of a user with these claims. Its subject is the claim called
// name. An error is an [*Error].
func (c *Claimants) Identify(claims map[string]any, name string) (*Principal, error) {
	subject, _ := claims[name].(string)
	if err := checkSubject(name, subject); err != nil {
		return nil, refuse(
			BadSubject, fmt.Sprintf("the identity provider's claim %q is not a valid subject", name),
		)
	}
	for _, e := range c.inUse() {
		if says(claims[e.claim], e.value) {
			who := *e.who
			who.Subject = subject
			return &who, nil
		}
	}
	return nil, refuse(
		UnknownClaims,
		"the identity provider knows you, but no principal of this server matches your claims",
	)
}

// claimVoucher names an entry of the file in a session.
func claimVoucher(claim, value string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(claim), claim, value))
	return "claims:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// vouch implements [Voucher] for sessions that began at the identity provider: while the entry
// that gave them their rights is in the file, and gives as many.
func (c *Claimants) vouch(_ context.Context, p *Principal) validity {
	s := func() context.Context {
		next := c.changed.next()
		for _, e := range c.inUse() {
			now := *e.who
			now.Subject = p.Subject
			if now.voucher == p.voucher && now.covers(p) {
				return next
			}
		}
		return nil
	}
	if s() == nil {
		return nil
	}
	return s
}

// says reports whether a claim is the value, or a list with it.
func says(claim any, value string) bool {
	list, _ := claim.([]any)
	return claim == any(value) || slices.Contains(list, any(value))
}
