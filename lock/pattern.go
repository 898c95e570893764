package lock

import (
	"errors"
	"fmt"
	"strings"
)

// MaxPatternLength is in bytes: more than any lock's name, and room for stars.
const MaxPatternLength = 256

// Pattern selects locks by name. A star matches any run of characters, an empty
// one included; every other character stands for itself. Whether a pattern can
// match any valid name at all is not checked.
//
// The zero Pattern matches only the empty name, so no lock.
type Pattern struct {
	text   string
	prefix string   // what stands before the first star
	suffix string   // what stands after the last star
	middle []string // what stands between stars, in order, without empty pieces
	star   bool     // without a star, prefix is the whole name
}

// ParsePattern compiles a pattern of 1 to 256 bytes.
func ParsePattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, errors.New("a pattern is empty")
	}
	if len(text) > MaxPatternLength {
		return Pattern{}, fmt.Errorf("a pattern is longer than %d bytes", MaxPatternLength)
	}
	pieces := strings.Split(text, "*")
	last := len(pieces) - 1
	p := Pattern{text: text, prefix: pieces[0], star: last > 0}
	if !p.star {
		return p, nil
	}
	p.suffix = pieces[last]
	for _, piece := range pieces[1:last] {
		if piece != "" {
			p.middle = append(p.middle, piece)
		}
	}
	return p, nil
}

// ParseNamePattern compiles a pattern of which every character is a star or can be in a
// lock's name, as a request brings it.
func ParseNamePattern(text string) (Pattern, error) {
	if strings.Trim(text, nameCharacters) != "" {
		return Pattern{}, errors.New("a pattern has a character that no name has")
	}
	return ParsePattern(text)
}

// nameCharacters are those of which a name and its pattern may consist.
const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@=+-*"

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Prefix is how every name begins that the pattern selects.
func (p Pattern) Prefix() string { return p.prefix }

// Match reports whether the pattern selects name. It does not allocate, and its
// time is bounded by len(name) times the number of stars.
func (p Pattern) Match(name string) bool {
	if !p.star {
		return name == p.prefix
	}
	rest, ok := strings.CutPrefix(name, p.prefix)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, p.suffix); !ok {
		return false
	}
	// The leftmost place of each piece leaves the most room for those after it,
	// so there is nothing to try again.
	for _, piece := range p.middle {
		if _, rest, ok = strings.Cut(rest, piece); !ok {
			return false
		}
	}
	return true
}

// Steps is for how long [Pattern.Match] looks at a name at most: as many times as long as it looks for one
// character. A longer text takes longer where the name is nearly like it: as in a name of 200 times the same
// letter, when that text is of this letter too, but for its last. 8 bytes take 4 times as long then, 63 bytes 13 to
// 16 times, and 64 bytes, for which the processor has no short way, 30 to 36 times.
func (p Pattern) Steps() int {
	steps := 1
	for _, piece := range p.middle {
		steps += stepsOf(len(piece))
	}
	return steps
}

func stepsOf(bytes int) int {
	switch {
	case bytes == 1:
		return 1
	case bytes <= 8:
		return 4
	case bytes < 64:
		return 16
	}
	return 36
}

// Covers reports whether p selects every name that the other pattern selects. A star
// in the other one stands for texts of which p knows nothing, and so has to fall on a star
// of p: nothing else in p can match one.
func (p Pattern) Covers(other Pattern) bool { return p.text != "" && p.Match(other.text) }
