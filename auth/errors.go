package auth

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
	Missing              Reason = "missing"               // no token at all
	Malformed            Reason = "malformed"             // not a JWS in compact form, or too long, or a registered claim of the wrong type
	UnsupportedAlgorithm Reason = "unsupported_algorithm" // "none", or an algorithm that no configured key has
	UnknownKey           Reason = "unknown_key"           // the kid is not in the key set
	BadSignature         Reason = "bad_signature"
	NoExpiry             Reason = "no_expiry"
	Expired              Reason = "expired"
	NotYetValid          Reason = "not_yet_valid" // nbf or iat lies in the future
	WrongIssuer          Reason = "wrong_issuer"  // or none, where one is required
	WrongAudience        Reason = "wrong_audience"
	NoSubject            Reason = "no_subject"
	BadSubject           Reason = "bad_subject"
	NoTenant             Reason = "no_tenant"
	BadTenant            Reason = "bad_tenant"
	BadScope             Reason = "bad_scope" // the claim is not a string
	BadLocks             Reason = "bad_locks" // the claim is not a list of patterns
)

// Error is the only error type that [Verifier.Verify] returns. Neither field
// ever holds a piece of the token or of a key: both may be logged, and Detail
// may be shown to the caller.
type Error struct {
	Reason Reason
	Detail string // one clause for a person
}

// Error describes the fault for a log.
func (e *Error) Error() string {
	return "bearer token: " + string(e.Reason) + ": " + e.Detail
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

func refuse(reason Reason, detail string) error {
	return &Error{Reason: reason, Detail: detail}
}
