//go:build !linux

package client

import "time"

// sinceBoot returns 0: the wall clock shows suspensions here.
func sinceBoot() time.Duration { return 0 }
