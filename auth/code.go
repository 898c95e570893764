package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// CodeLife is for how long a one-time code is good.
	CodeLife = 5 * time.Minute

	// maxCodes is how many codes are kept. The oldest gives way.
	maxCodes = 16
)

// Codes are one-time codes: each stands for a principal, once, for [CodeLife]. They are kept
// in memory, so only the process that issued a code takes it. It is safe for concurrent use.
type Codes struct {
	now func() time.Time

	mu   sync.Mutex
	open []issued // the oldest first
}

// issued is a code; only its hash is kept.
type issued struct {
	hash  [sha256.Size]byte
	who   *Principal
	until time.Time
}

// NewCodes returns no codes yet. now is the clock; nil means [time.Now].
func NewCodes(now func() time.Time) *Codes {
	if now == nil {
		now = time.Now
	}
	return &Codes{now: now}
}

// Issue returns a new code for p: letters and digits, 128 random bits.
func (c *Codes) Issue(p *Principal) string {
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == maxCodes {
		c.open = append(c.open[:0], c.open[1:]...)
	}
	c.open = append(c.open, issued{sha256.Sum256([]byte(code)), p, c.now().Add(CodeLife)})
	return code
}

// Redeem uses a code up and returns its principal. It returns the same [*Error] for an unknown, a
// used and an expired code.
func (c *Codes) Redeem(code string) (*Principal, error) {
	hash := sha256.Sum256([]byte(code)) // what is compared, so its time says nothing about codes
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.open {
		if known.hash != hash {
			continue
		}
		c.open = append(c.open[:i], c.open[i+1:]...)
		if c.now().Before(known.until) {
			return known.who, nil
		}
		break
	}
	return nil, refuse(BadCode, "the code is not known here, was used, or is older than 5 minutes")
}
