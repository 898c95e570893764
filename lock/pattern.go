package lock

import (
	"errors"
	"fmt"
	"strings"
)

// MaxPatternLength is in bytes: more than the longest name.
const MaxPatternLength = 256

// Pattern selects locks by name. It has at most one star, which matches any run of characters,
// including none. Every other character matches itself. A pattern may match no valid name.
//
// The zero Pattern matches only the empty name, so no lock.
type Pattern struct {
	text   string
	prefix string // before the star
	suffix string // after it
	star   bool   // without a star, prefix is an exact match
}

// ParsePattern compiles a pattern of 1 to 256 bytes.
func ParsePattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, errors.New("a pattern is empty")
	}
	if len(text) > MaxPatternLength {
		return Pattern{}, fmt.Errorf("a pattern is longer than %d bytes", MaxPatternLength)
	}
	p := Pattern{text: text}
	p.prefix, p.suffix, p.star = strings.Cut(text, "*")
	if strings.Contains(p.suffix, "*") {
		return Pattern{}, errors.New("a pattern has more than one star")
	}
	return p, nil
}

// ParseNamePattern compiles a request's pattern. Each character must be a star or valid in a
// lock's name.
func ParseNamePattern(text string) (Pattern, error) {
	if strings.Trim(text, nameCharacters) != "" {
		return Pattern{}, errors.New("a pattern has a character that no name has")
	}
	return ParsePattern(text)
}

// nameCharacters are the characters that a name and its pattern may have.
const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@=+-*"

// String returns the pattern's text.
func (p Pattern) String() string { return p.text }

// Prefix returns the start of every name that the pattern selects.
func (p Pattern) Prefix() string { return p.prefix }

// Match reports whether the pattern selects name. It does not allocate.
func (p Pattern) Match(name string) bool {
	if !p.star {
		return name == p.prefix
	}
	rest, ok := strings.CutPrefix(name, p.prefix)
	return ok && strings.HasSuffix(rest, p.suffix)
}

// Covers reports whether p selects every name that the other pattern selects. A star in the other
// pattern matches any text, so only a star of p covers it.
func (p Pattern) Covers(other Pattern) bool { return p.text != "" && p.Match(other.text) }
