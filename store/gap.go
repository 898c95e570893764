package store

import "time"

// LongestGap is for how long a feed may have been interrupted at most for its reader to say why
// entries went meanwhile: stores may have forgotten the reasons after that.
const LongestGap = 10 * time.Minute

// Age is how long ago t was, at most. A machine that sleeps stops the monotonic clock, and one
// whose clock is set changes the other.
func Age(t time.Time) time.Duration { return max(time.Since(t), time.Since(t.Round(0))) }
