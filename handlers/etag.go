package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// tagOf returns the ETag of an answer: a weak one, because it covers everything but when and at
// which replica the answer was made.
func tagOf(text []byte) string {
	sum := sha256.Sum256(withoutMoment(text))
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// withoutMoment cuts off the first members of an answer with [api.Seen]: revision, server_now and
// replica.
func withoutMoment(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(`{"revision":`)) {
		return text
	}
	_, after, found := bytes.Cut(text, []byte(`"replica":"`))
	if !found {
		return text
	}
	_, rest, _ := bytes.Cut(after, []byte(`"`))
	return rest
}

// unchanged answers with 304 if the client has the answer with the tag already. It sets the ETag
// anyway. A 304 has no line in the log: a page polls once a second.
func unchanged(r *request, tag string) bool {
	r.Writer.Header()["Etag"] = []string{tag}
	if !matchesTag(r.Request.Header.Get("If-None-Match"), tag) {
		return false
	}
	r.line.quiet = true
	r.Writer.WriteHeader(http.StatusNotModified)
	r.Writer.WriteHeaderNow()
	return true
}

// matchesTag compares tags weakly (RFC 9110, section 13.1.2).
func matchesTag(known, tag string) bool {
	for one := range strings.SplitSeq(known, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
