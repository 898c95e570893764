package api

// SessionBody signs in at the dashboard, with either of the two.
type SessionBody struct {
	// BearerToken is a token with the scope `admin` or `tenant-admin`.
	BearerToken *string `json:"bearer_token,omitempty" maxLength:"8192" example:"eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmVk"`
	// Code is the one-time code of the link that a development server prints.
	Code *string `json:"code,omitempty" maxLength:"64" example:"JBSWY3DPEHPK3PXPJBSWY3DPEH"`
}

// Session is the user at the dashboard.
type Session struct {
	// Tenant of the bearer token with which it began.
	Tenant string `json:"tenant" example:"acme"`
	// Subject of that token.
	Subject string `json:"subject" example:"ann"`
	// Scopes of that token that the server knows.
	Scopes []string `json:"scopes" example:"admin"`
	// Locks are the patterns that the token is limited to; left out without a limit.
	Locks []string `json:"locks,omitempty" example:"orders:*"`
	// ExpiresAt is when the session ends: with the token, after 12 hours, or an hour after a sign-in
	// by an identity provider.
	ExpiresAt Instant `json:"expires_at" swaggertype:"string" format:"date-time" example:"2026-01-02T20:04:05.000Z"`
	// ServerNow is the server's clock.
	ServerNow Instant `json:"server_now" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
}

// SignIn is how one may sign in at the dashboard besides with a bearer token.
type SignIn struct {
	// Provider is the host of the identity provider behind /dashboard/sign-in/oidc; left out
	// without one.
	Provider *string `json:"provider,omitempty" example:"login.example.com"`
}
