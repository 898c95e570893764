package lock

import "errors"

// Callback is the URL that receives messages about one entry, and the secret that signs them.
type Callback struct {
	URL    string // at most [MaxCallbackURL] bytes
	Secret string // the id of the secret that signs, a [ValidName]; never the secret
}

// MaxCallbackURL is how long the URL of a callback may be, in bytes.
const MaxCallbackURL = 2048

// Check returns why the callback cannot be stored. Another check decides whether the server may
// call the URL.
func (c *Callback) Check() error {
	switch {
	case c.URL == "" || len(c.URL) > MaxCallbackURL:
		return errors.New("a callback URL that is empty or too long")
	case !ValidName(c.Secret):
		return errors.New("a callback without the id of a secret")
	}
	return nil
}
