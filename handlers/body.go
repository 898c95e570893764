package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxBody     = 16 << 10
	bodyTimeout = 10 * time.Second // for a body to arrive
)

// readJSON reads the body to its end and decodes it strictly into v. No body is
// an empty object. The end matters: only behind it does net/http notice that a
// client goes away while it waits.
func (r *request) readJSON(v any) error {
	text, err := r.readBody()
	if err != nil || len(text) == 0 {
		return err
	}
	if err := r.checkForm(); err != nil {
		return err
	}
	if text = withoutMark(text); len(text) == 0 || text[0] != '{' {
		return lock.Errorf(lock.InvalidRequest, "the body must be a JSON object")
	}
	if !utf8.Valid(text) { // the decoder would put something else in its place
		return lock.Errorf(lock.InvalidRequest, "the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return suggestField(explain(err), v)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return lock.Errorf(lock.InvalidRequest, "the body goes on after the JSON object")
	}
	return suggestField(checkMembers(text), v)
}

// manyMembers is more than any object has that is not refused anyway.
const manyMembers = 100

// checkMembers refuses what the decoder lets pass: a name in another case in the
// object that it knows, the first of two members of one name in any, and half of a
// surrogate pair, in the place of which it would put something else. The text is
// known to be valid JSON.
func checkMembers(text []byte) error {
	var open [][]string // the members so far of the objects and lists around
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			end := endOfString(text, i+1)
			if halved(text[i+1 : end]) {
				return lock.Errorf(lock.InvalidRequest, "the body has half of a surrogate pair in an escape")
			}
			if after := bytes.TrimLeft(text[end+1:], " \t\r\n"); len(after) > 0 && after[0] == ':' {
				name, inner := unquoted(text[i:end+1]), len(open)-1
				if err := checkMember(name, open[inner], !chosen(open)); err != nil {
					return err
				}
				open[inner] = append(open[inner], name)
			}
			i = end
		}
	}
	return nil
}

// chosen reports whether the client chooses the names in the innermost object.
func chosen(open [][]string) bool {
	outer := open[0]
	return len(open) > 1 && len(outer) > 0 && outer[len(outer)-1] == "metadata"
}

// halved reports whether a string, as JSON writes it, has an escape of one half of
// a surrogate pair without the other.
func halved(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] != 'u' {
			continue
		}
		if first := escaped(text[i:]); utf16.IsSurrogate(first) {
			i += len("uXXXX")
			if i+1 >= len(text) || text[i] != '\\' || text[i+1] != 'u' || utf16.DecodeRune(first, escaped(text[i+1:])) == utf8.RuneError {
				return true
			}
			i++
		}
	}
	return false
}

// escaped returns the code of an escape, of which text begins with the u.
func escaped(text []byte) rune {
	code, _ := strconv.ParseUint(string(text[1:5]), 16, 32) // it is valid
	return rune(code)
}

func checkMember(name string, before []string, known bool) error {
	switch {
	case known && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "":
		return lock.Invalid(name, notKnown)
	case len(before) < manyMembers && slices.Contains(before, name):
		return lock.Invalid(name, "must not be there twice")
	}
	return nil
}

func unquoted(text []byte) string {
	plain := string(text[1 : len(text)-1])
	if strings.Contains(plain, `\`) {
		_ = json.Unmarshal(text, &plain) // it is valid
	}
	return plain
}

// endOfString returns where the string's closing quote is.
func endOfString(text []byte, i int) int {
	for ; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func (r *request) readBody() ([]byte, error) {
	if r.Request.ContentLength == 0 {
		return nil, nil
	}
	// A server-wide read timeout would end waiting requests, so the deadline is
	// set for the body alone. Connections that have no deadlines have no body
	// that could be slow either.
	control := http.NewResponseController(r.Writer)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	began := time.Now()
	text, err := io.ReadAll(http.MaxBytesReader(r.Writer, r.Request.Body, maxBody))
	r.arriving += time.Since(began) // how fast a client sends says nothing of how fast the server is
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, lock.Errorf(lock.BodyTooLarge, "a body may be %d bytes long", maxBody)
	}
	if err != nil {
		return nil, lock.Errorf(lock.InvalidRequest, "the body did not arrive whole")
	}
	r.received = len(text)
	r.arrived.Body = http.NoBody // for which no answer has to wait
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	if r.principal != nil && !r.principal.Valid() { // a body may take as long as [bodyTimeout]
		return nil, r.challenge(errWithdrawn())
	}
	return bytes.Trim(text, " \t\r\n"), checkHeaders(r.arrived.Trailer)
}

// skipBody reads a body that means nothing, before an answer that has no end: over HTTP/2 what nobody has read
// takes room that other requests of the connection need for theirs.
func (r *request) skipBody() error {
	_, err := r.readBody()
	return err
}

// checkForm refuses a body that says that it is something else than JSON in UTF-8
// as it stands.
func (r *request) checkForm() error {
	for _, coding := range r.Request.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			r.Header("Accept-Encoding", "identity")
			return lock.Errorf(lock.UnsupportedMedia, "send the body without a Content-Encoding")
		}
	}
	values := r.Request.Header["Content-Type"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	switch charset, named := parameters["charset"]; {
	case err != nil || media != "application/json" || len(values) > 1:
		return lock.Errorf(lock.UnsupportedMedia, "send the body as application/json")
	case named && !isUTF8(charset):
		return lock.Errorf(lock.UnsupportedMedia, "send the body in UTF-8")
	}
	return nil
}

// isUTF8 reports whether text in a charset is UTF-8 as it stands: some clients write the
// name without its hyphen, and ASCII is a part of it.
func isUTF8(charset string) bool {
	return slices.Contains([]string{"utf-8", "utf8", "us-ascii"}, strings.ToLower(charset))
}

// withoutMark leaves out a byte order mark, which RFC 8259, section 8.1, lets a parser skip.
func withoutMark(text []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), " \t\r\n")
}

// explain turns a decoder's error into one that names the field.
func explain(err error) error {
	var ours *lock.Error
	if errors.As(err, &ours) { // a part of the body that reads itself
		return ours
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		field := strings.TrimPrefix(strings.TrimPrefix(wrongType.Field, "Terms."), "QuotaOverrides.") // the decoder names what is embedded too
		return lock.Invalid(field, "must be %s", describeType(field, wrongType.Type))
	}
	if rest, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return lock.Invalid(strings.Trim(rest, `"`), notKnown)
	}
	return lock.Errorf(lock.InvalidRequest, "the body is not valid JSON")
}

func describeType(field string, t reflect.Type) string {
	if field == "metadata" { // the decoder names no deeper field, and the type of that
		return "an object of strings"
	}
	if field == "events" { // likewise
		return "a list of strings"
	}
	if field == "locks" && t.Kind() == reflect.Slice {
		return shapeOfLocks
	}
	switch t.Kind().String() {
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "float64":
		return "a number"
	case "int":
		return "a whole number"
	case "uint":
		return "a whole number from 0 up"
	case "slice":
		return "a list"
	case "map", "struct":
		return "an object"
	}
	return "of another type"
}
