package lock

import "strings"

// Parts of a traceparent of version 00: 2 digits, then a trace, a span and flags.
const (
	traceSize  = 55
	traceStart = "00-"
	spanStart  = len(traceStart) + 32 + 1
	flagsStart = spanStart + 16 + 1
)

// ValidTrace reports whether s is a W3C traceparent of version 00, which is 55 bytes
// long and names a trace and a span.
func ValidTrace(s string) bool {
	if len(s) != traceSize || !strings.HasPrefix(s, traceStart) || s[spanStart-1] != '-' ||
		s[flagsStart-1] != '-' {
		return false
	}
	trace, span, flags := s[len(traceStart):spanStart-1], s[spanStart:flagsStart-1], s[flagsStart:]
	return isHex(trace) && isHex(span) && isHex(flags) &&
		strings.Trim(trace, "0") != "" && strings.Trim(span, "0") != ""
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
