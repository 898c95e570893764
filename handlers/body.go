package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxBody     = 16 << 10
	bodyTimeout = 10 * time.Second // for a body to arrive
)

// readJSON reads the body to its end and decodes it strictly into v. No body is
// an empty object. The end matters: only behind it does net/http notice that a
// client goes away while it waits.
func readJSON(c *gin.Context, v any) error {
	text, err := readBody(c)
	if err != nil || len(text) == 0 {
		return err
	}
	if err := checkContentType(c.Request.Header.Get("Content-Type")); err != nil {
		return err
	}
	if text[0] != '{' {
		return lock.Errorf(lock.InvalidRequest, "the body must be a JSON object")
	}
	if !utf8.Valid(text) { // the decoder would put something else in its place
		return lock.Errorf(lock.InvalidRequest, "the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return lock.Errorf(lock.InvalidRequest, "the body goes on after the JSON object")
	}
	return checkMembers(text)
}

// checkMembers refuses what the decoder lets pass in an object that it knows: a
// name in another case, and the first of two members of one name. The text is
// known to be valid JSON.
func checkMembers(text []byte) error {
	var seen []string
	for name := range memberNames(text) {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return lock.Invalid(name, "is not known here")
		}
		if slices.Contains(seen, name) {
			return lock.Invalid(name, "must not be there twice")
		}
		seen = append(seen, name)
	}
	return nil
}

// memberNames yields the names of the object's own members: each string one level
// deep that a colon follows.
func memberNames(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		depth := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case '"':
				end := endOfString(text, i+1)
				after := bytes.TrimLeft(text[end+1:], " \t\r\n")
				if depth == 1 && after[0] == ':' && !yield(unquoted(text[i:end+1])) {
					return
				}
				i = end
			}
		}
	}
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

func readBody(c *gin.Context) ([]byte, error) {
	if c.Request.ContentLength == 0 {
		return nil, nil
	}
	// A server-wide read timeout would end waiting requests, so the deadline is
	// set for the body alone. Connections that have no deadlines have no body
	// that could be slow either.
	control := http.NewResponseController(c.Writer)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, lock.Errorf(lock.BodyTooLarge, "a body may be %d bytes long", maxBody)
	}
	if err != nil {
		return nil, lock.Errorf(lock.InvalidRequest, "the body did not arrive whole")
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return bytes.Trim(text, " \t\r\n"), nil
}

func checkContentType(value string) error {
	if value == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(value)
	if err != nil || media != "application/json" {
		return lock.Errorf(lock.UnsupportedMedia, "send the body as application/json")
	}
	return nil
}

// explain turns a decoder's error into one that names the field.
func explain(err error) error {
	var ours *lock.Error
	if errors.As(err, &ours) { // a part of the body that reads itself
		return ours
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		field := strings.TrimPrefix(wrongType.Field, "Terms.") // the decoder names what is embedded too
		return lock.Invalid(field, "must be %s", describeType(field, wrongType.Type))
	}
	if rest, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return lock.Invalid(strings.Trim(rest, `"`), "is not known here")
	}
	return lock.Errorf(lock.InvalidRequest, "the body is not valid JSON")
}

func describeType(field string, t reflect.Type) string {
	if field == "metadata" { // the decoder names no deeper field, and the type of that
		return "an object of strings"
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
	case "slice":
		return "a list"
	case "map", "struct":
		return "an object"
	}
	return "of another type"
}
