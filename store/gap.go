package store

import "time"

// LongestGap bounds the interruption of a feed after which its reader can still explain why
// entries left. After longer ones stores may have dropped the reasons.
const LongestGap = 10 * time.Minute

// Age returns the time since t, at most. Sleep stops the monotonic clock, and setting the clock
// changes the wall clock.
func Age(t time.Time) time.Duration { return max(time.Since(t), time.Since(t.Round(0))) }
