package handlers

import "strings"

// respondAsync is the preference of RFC 7240 for an answer at once.
const respondAsync = "respond-async"

// prefersAsync reports whether the request prefers an answer at once to one that waits. Of
// a preference that is named several times the first counts, and an empty value is none.
func (r *request) prefersAsync() bool {
	for _, line := range r.Request.Header["Prefer"] {
		for rest := line; rest != ""; {
			var preference string
			preference, rest = cutUnquoted(rest, ',')
			preference, _ = cutUnquoted(preference, ';') // without its parameters
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.Trim(name, " \t"), respondAsync) {
				return strings.Trim(value, " \t") == "" || strings.Trim(value, " \t") == `""`
			}
		}
	}
	return false
}

// cutUnquoted is [strings.Cut] at the first sep that is in no quoted string, in which a
// backslash takes its meaning from what follows (RFC 9110, section 5.6.4).
func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
