package auth

import "github.com/fencepost/fencepost/lock"

// Pattern selects locks by name, see [lock.Pattern].
type Pattern = lock.Pattern

// ParsePattern is [lock.ParsePattern].
func ParsePattern(text string) (Pattern, error) { return lock.ParsePattern(text) }

// ParseNamePattern is [lock.ParseNamePattern].
func ParseNamePattern(text string) (Pattern, error) { return lock.ParseNamePattern(text) }
