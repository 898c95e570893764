package lock

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckHolder returns what is wrong with a holder's name, or "": a phrase that follows the name
// of the field. The rule also holds for a bearer token's subject, which is the default holder.
func CheckHolder(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case utf8.RuneCountInString(s) > MaxHolderLength:
		return "must not be longer than 200 characters"
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case !oneLine(s):
		return "must not have control characters, line breaks or marks that turn the direction of writing"
	}
	return ""
}

// Bounds of an operator's explanations, in characters.
const (
	MinExplanation = 10
	MaxExplanation = 500
)

// CheckExplanation returns what is wrong with an operator's reason, as a phrase, or "". It is one
// line, like a holder's name.
func CheckExplanation(s string) string {
	switch n := utf8.RuneCountInString(s); {
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case n > MaxExplanation || utf8.RuneCountInString(strings.TrimSpace(s)) < MinExplanation:
		return "must have 10 to 500 characters"
	case !oneLine(s):
		return "must not have control characters, line breaks or marks that turn the direction of writing"
	}
	return ""
}

// MaxDescription is the longest description, in characters.
const MaxDescription = 200

// CheckDescription returns what is wrong with a description, as a phrase, or "". It is one line,
// or empty.
func CheckDescription(s string) string {
	switch {
	case utf8.RuneCountInString(s) > MaxDescription:
		return "must not be longer than 200 characters"
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case !oneLine(s):
		return "must not have control characters, line breaks or marks that turn the direction of writing"
	}
	return ""
}

// CheckMetadata returns what is wrong with an entry's metadata as a phrase, or "". A key is a
// name like a holder's, though it may be empty. A value is text of any number of lines. Of the
// control characters it may have tabs and line breaks; marks of direction are allowed, because
// some languages need them.
func CheckMetadata(pairs map[string]string) string {
	if len(pairs) > MaxMetadata {
		return "must not have more than 16 pairs"
	}
	size := 0
	for key, value := range pairs {
		size += len(key) + len(value)
		switch {
		case !utf8.ValidString(key) || !utf8.ValidString(value):
			return "must be UTF-8"
		case !oneLine(key):
			return "must not have keys with control characters, line breaks or marks that turn the direction of writing"
		case strings.ContainsFunc(value, unfitForText):
			return "must not have values with control characters other than tabs and line breaks"
		}
	}
	if size > MaxMetadataSize {
		return "must not be longer than 2048 bytes in all"
	}
	return ""
}

// oneLine reports whether a text shows unchanged wherever it is printed: in a log, on a terminal
// or in a table.
func oneLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	})
}

func unfitForText(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
}
