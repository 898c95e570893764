package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxPatterns = 100

	// latestDate is the end of the year 9999, in seconds since 1970: beyond it
	// a number of seconds no longer fits the types that carry it.
	latestDate = 253402300799
)

// claims are the members of a token's claims set, not yet interpreted. The
// standard decoding into a struct is not used because it takes "Tenant" for
// "tenant" and the last of two members of one name: an issuer that lets its
// users choose some other claim must not let them choose these.
type claims map[string]json.RawMessage

// UnmarshalJSON reads the members of one JSON object and refuses a repeated
// name, as RFC 7519 section 4 asks.
func (c *claims) UnmarshalJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return errors.New("not an object")
	}
	*c = claims{}
	for d.More() {
		if err := c.readMember(d); err != nil {
			return err
		}
	}
	return nil
}

func (c claims) readMember(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	name, ok := token.(string)
	if _, repeated := c[name]; repeated || !ok {
		return errors.New("a repeated member")
	}
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return err
	}
	c[name] = value
	return nil
}

// text returns the string of a member, "" if it is not there. A member of
// another type, null included, is an error with the given reason.
func (c claims) text(name string, reason Reason) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", nil
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", refuse(reason, name+" is not a string")
	}
	return *s, nil
}

func (c claims) date(name string) (*jwt.NumericDate, error) {
	raw, ok := c[name]
	if !ok {
		return nil, nil
	}
	var seconds *float64
	if err := json.Unmarshal(raw, &seconds); err != nil || seconds == nil {
		return nil, refuse(Malformed, name+" is not a number")
	}
	if *seconds < 0 || *seconds > latestDate {
		return nil, refuse(Malformed, name+" is not a date")
	}
	return jwt.NewNumericDate(time.Unix(int64(*seconds), 0)), nil
}

// The getters below make claims a jwt.Claims. The library calls them only
// after the signature was found good.

func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.date("exp") }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.date("nbf") }

// GetIssuedAt is not asked: an issuer's clock that is ahead is no reason to reject.
func (c claims) GetIssuedAt() (*jwt.NumericDate, error) { return nil, nil }

func (c claims) GetIssuer() (string, error) {
	s, err := c.text("iss", WrongIssuer)
	return s, err
}

func (c claims) GetSubject() (string, error) {
	s, err := c.text("sub", BadSubject)
	return s, err
}

func (c claims) GetAudience() (jwt.ClaimStrings, error) {
	raw, ok := c["aud"]
	if !ok {
		return nil, nil
	}
	var audience jwt.ClaimStrings
	if err := json.Unmarshal(raw, &audience); err != nil {
		return nil, refuse(WrongAudience, "aud is neither a string nor a list of strings")
	}
	return audience, nil
}

// principal interprets the claims that are Fencepost's own.
func (c claims) principal(names ClaimNames) (*Principal, error) {
	subject, err := c.subject()
	if err != nil {
		return nil, err
	}
	tenant, err := c.tenant(names.Tenant)
	if err != nil {
		return nil, err
	}
	scopes, err := c.scopes(names)
	if err != nil {
		return nil, err
	}
	patterns, err := c.locks(names.Locks)
	if err != nil {
		return nil, err
	}
	expires, err := c.date("exp")
	if err != nil {
		return nil, err
	}
	return &Principal{
		Tenant: tenant, Subject: subject, Scopes: scopes, Locks: patterns, Expires: expires.Time,
	}, nil
}

func (c claims) subject() (string, error) {
	subject, err := c.text("sub", BadSubject)
	if err != nil {
		return "", err
	}
	return subject, checkSubject("sub", subject)
}

// checkSubject holds a subject to the rules of a holder's name, because it is
// the default for one. It calls it by the name of the member that it stands in.
func checkSubject(member, subject string) error {
	if subject == "" {
		return refuse(NoSubject, member+" is missing")
	}
	if wrong := lock.CheckHolder(subject); wrong != "" {
		return refuse(BadSubject, member+" "+wrong)
	}
	return nil
}

func (c claims) tenant(name string) (string, error) {
	tenant, err := c.text(name, BadTenant)
	if err != nil {
		return "", err
	}
	return tenant, checkTenant(name, tenant)
}

// checkTenant calls the tenant by the name of the member that it stands in.
func checkTenant(member, tenant string) error {
	if tenant == "" {
		return refuse(NoTenant, member+" is missing")
	}
	if !lock.ValidTenant(tenant) {
		return refuse(BadTenant,
			member+" is not 1 to 63 lower-case letters, digits and hyphens, with no hyphen first")
	}
	if tenant == lock.OwnTenant {
		return refuse(BadTenant, member+" "+lock.OwnTenant+" is this service's own")
	}
	return nil
}

// locks returns nil if the claim is missing, never nil if it is there: a list
// that was meant to limit the token must not be taken for no limit.
func (c claims) locks(name string) ([]Pattern, error) {
	raw, ok := c[name]
	if !ok {
		return nil, nil
	}
	var texts []*string
	if err := json.Unmarshal(raw, &texts); err != nil || texts == nil {
		return nil, refuse(BadLocks, name+" is not a list of strings")
	}
	if len(texts) > maxPatterns {
		return nil, refuse(BadLocks, fmt.Sprintf("%s has more than %d patterns", name, maxPatterns))
	}
	patterns := make([]Pattern, 0, len(texts))
	for _, text := range texts {
		if text == nil {
			return nil, refuse(BadLocks, name+" is not a list of strings")
		}
		p, err := ParsePattern(*text)
		if err != nil {
			return nil, refuse(BadLocks, name+": "+err.Error())
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}
