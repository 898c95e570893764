package auth

import "strings"

// Reason says in what way a bearer token is bad, for a program: a metric, a log
// field, a test. It is an error itself, so that errors.Is(err, auth.Expired)
// works on what [Verifier.Verify] returns.
type Reason string

// Error returns the reason as it stands in logs and metrics.
func (r Reason) Error() string { return string(r) }

// The reasons. There is no order of checks to rely on between two faults of one
// token, except that nothing is said about the claims of a token whose
// signature is bad.
const (
	Missing Reason = "missing" // no token at all
	// not a JWS in compact form, or too long, or a registered claim of the wrong type
	Malformed Reason = "malformed"
	// "none", or an algorithm that no configured key has
	UnsupportedAlgorithm Reason = "unsupported_algorithm"
	UnknownKey           Reason = "unknown_key" // the kid is not in the key set
	BadSignature         Reason = "bad_signature"
	NoExpiry             Reason = "no_expiry"
	Expired              Reason = "expired"
	NotYetValid          Reason = "not_yet_valid" // nbf lies in the future
	WrongIssuer          Reason = "wrong_issuer"  // or none, where one is required
	WrongAudience        Reason = "wrong_audience"
	NoSubject            Reason = "no_subject"
	BadSubject           Reason = "bad_subject"
	NoTenant             Reason = "no_tenant"
	BadTenant            Reason = "bad_tenant"
	BadScope             Reason = "bad_scope" // the claim is neither a string nor a list of strings
	BadLocks             Reason = "bad_locks" // the claim is not a list of patterns
	// not a text of [Sessions.Seal], or of another secret's
	BadSession Reason = "bad_session"
	TooLarge   Reason = "too_large" // for a session
	BadCode    Reason = "bad_code"  // unknown, used up, or too old

	// the key or the entry of a file that vouched for the caller is gone
	Withdrawn Reason = "withdrawn"

	// of a client, that maps to no principal or to several
	UnknownCertificate Reason = "unknown_certificate"
	// of an identity provider's user without rights here
	UnknownClaims Reason = "unknown_claims"
	BadSignIn     Reason = "bad_sign_in" // not one that this browser began, or too old
	Denied        Reason = "denied"      // by the identity provider, or it names no user
	NoProvider    Reason = "no_provider" // the identity provider does not answer
)

// Error is the only error type that [Verifier.Verify], [Sessions], [Codes],
// [Principals.Identify] and [Claimants.Identify] return for what they are given. Nothing in it is
// secret: all of it may be logged, and Detail, which has no piece of the token or of
// a key, may be shown to the caller.
type Error struct {
	Reason Reason
	Detail string // one clause for a person

	// KeyID is the kid that the token names, for the log: up to 64 letters, digits and
	// signs, others as a question mark. "" if it names none. Anybody can have written it.
	KeyID string
}

// Error describes the fault for a log.
func (e *Error) Error() string {
	return "bearer token: " + string(e.Reason) + ": " + e.Detail
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// loggedKeyID makes the kid of an unverified token safe to log.
func loggedKeyID(header map[string]any) string {
	const longest = 64
	kid, _ := header["kid"].(string)
	harmless := func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' ||
			strings.ContainsRune("-._~:/+=@#", r) {
			return r
		}
		return '?'
	}
	if runes := []rune(kid[:min(len(kid), 4*longest)]); len(runes) > longest {
		kid = string(runes[:longest])
	}
	return strings.Map(harmless, kid)
}

func refuse(reason Reason, detail string) error {
	return &Error{Reason: reason, Detail: detail}
}
