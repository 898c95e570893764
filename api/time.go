package api

import (
	"math"
	"time"
)

const millis = "2006-01-02T15:04:05.000Z"

// Instant is a time in RFC 3339, UTC, with milliseconds.
type Instant string

// InstantOf cuts a time to the millisecond.
func InstantOf(t time.Time) Instant {
	var text [len(millis) + 8]byte // AppendFormat takes more than it returns
	return Instant(t.UTC().AppendFormat(text[:0], millis))
}

// Time reads it.
func (i Instant) Time() (time.Time, error) { return time.Parse(time.RFC3339, string(i)) }

// Seconds is a duration in seconds with three decimals.
type Seconds float64

// SecondsOf rounds a duration to the millisecond.
func SecondsOf(d time.Duration) Seconds {
	return Seconds(math.Round(d.Seconds()*1000) / 1000)
}

// Duration is the same as Go has it.
func (s Seconds) Duration() time.Duration {
	return time.Duration(math.Round(float64(s) * float64(time.Second)))
}
