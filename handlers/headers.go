package handlers

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// acceptRequestID takes a client's request id if it is harmless, and makes one
// otherwise.
func acceptRequestID(given string) string {
	const maxLength = 128
	harmless := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.ContainsRune("._-", c)
	}
	if given != "" && len(given) <= maxLength &&
		strings.IndexFunc(given, func(c rune) bool { return !harmless(c) }) < 0 {
		return given
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, rand.Uint64()))
}

// maxHeaders is how many header fields a request may have, each line counted. They are
// kept for as long as it waits, and thousands of short ones would take ten times the bytes
// in which they were sent.
const maxHeaders = 100

func checkHeaders(h http.Header) error {
	fields := 0
	for _, values := range h {
		fields += len(values)
	}
	if fields > maxHeaders {
		return lock.Errorf(lock.InvalidRequest, "the request has too many header fields; "+
			"send %d at most", maxHeaders)
	}
	return nil
}

func idempotencyKey(h http.Header) (string, error) {
	values, sent := h["Idempotency-Key"]
	if !sent {
		return "", nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > maxIdempotencyKey ||
		!printable(values[0]) {
		return "", lock.Invalid(
			"Idempotency-Key", "must be 1 to %d printable characters", maxIdempotencyKey,
		)
	}
	return values[0], nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// replayedHeader marks the answer about the entry of an earlier request with the key.
const replayedHeader = "Idempotency-Replayed"

func readTokenHeader(r *request, req *service.TokenRequest) error {
	values := r.Request.Header["Lock-Token"]
	if len(values) != 1 || values[0] == "" {
		return lock.Invalid("Lock-Token", "must be sent, once, as a header")
	}
	req.Token = values[0]
	return nil
}

// respondAsync is the preference of RFC 7240 for an answer at once.
const respondAsync = "respond-async"

// prefersAsync reports whether the request prefers an answer at once to one that waits. An empty
// value is none.
func prefersAsync(h http.Header) bool {
	value, stated := preference(h, respondAsync)
	return stated && (value == "" || value == `""`)
}

// preferredHold returns for how long the client wants the request to be held open at most, by the
// preference wait; 0 is as the server likes.
func preferredHold(h http.Header) time.Duration {
	value, _ := preference(h, "wait")
	seconds, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0
	}
	return max(time.Duration(seconds)*time.Second, 1) // 0 s is at once
}

// preference returns the value of a preference of RFC 7240. Of one that is named several times
// the first counts.
func preference(h http.Header, wanted string) (value string, stated bool) {
	for _, line := range h["Prefer"] {
		for rest := line; rest != ""; {
			var preference string
			preference, rest = cutUnquoted(rest, ',')
			preference, _ = cutUnquoted(preference, ';') // without its parameters
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.Trim(name, " \t"), wanted) {
				return strings.Trim(value, " \t"), true
			}
		}
	}
	return "", false
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
