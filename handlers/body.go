package handlers

import (
	"bytes"
	v1 "encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	into := r.endpoints.buffers.Get().(*bytes.Buffer)
	defer r.endpoints.putBack(into)
	text, err := r.readBody(into)
	if err != nil || len(text) == 0 {
		return err
	}
	if err := checkForm(r); err != nil {
		return err
	}
	if text = withoutMark(text); len(text) == 0 || text[0] != '{' {
		return lock.Errorf(lock.InvalidRequest, "the body must be a JSON object")
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		return suggestField(explain(err), v)
	}
	return nil
}

// readBody reads the body into a buffer, and returns it without the space around it.
func (r *request) readBody(into *bytes.Buffer) ([]byte, error) {
	into.Reset()
	if r.Request.ContentLength == 0 {
		return nil, nil
	}
	// A server-wide read timeout would end waiting requests, so the deadline is for the body alone.
	began := time.Now()
	if err := r.out.bodyDeadline(began.Add(bodyTimeout)); err != nil {
		return nil, err
	}
	body := r.Request.Body
	if length := r.Request.ContentLength; length < 0 || length > maxBody {
		body = http.MaxBytesReader(r.Writer, body, maxBody)
	}
	_, err := into.ReadFrom(body)
	r.arriving += time.Since(began) // how fast a client sends says nothing of how fast the server is
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, lock.Errorf(lock.BodyTooLarge, "the body is too long; send %d bytes at most", maxBody)
	}
	if err != nil {
		return nil, lock.Errorf(lock.InvalidRequest, "the body did not arrive whole; send it again")
	}
	_ = body.Close() // otherwise net/http looks for more of it before it sends the answer
	r.out.unread = false
	if err := r.out.bodyDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if r.principal != nil { // a body may take as long as [bodyTimeout]
		if why := whyOver(r.principal.Over()); why != "" {
			return nil, r.challenge(lock.Errorf(lock.Unauthenticated, "%s", why))
		}
	}
	return bytes.Trim(into.Bytes(), " \t\r\n"), checkHeaders(r.arrived.Trailer)
}

// skipBody reads a body that means nothing, before an answer that has no end: over HTTP/2 an unread
// body takes the window that other requests of the connection need.
func (r *request) skipBody() error {
	_, err := r.readBody(new(bytes.Buffer))
	return err
}

// checkForm refuses a body that says that it is something else than JSON in UTF-8
// as it stands.
func checkForm(r *request) error {
	for _, coding := range r.Request.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			r.Header("Accept-Encoding", "identity")
			return lock.Errorf(lock.UnsupportedMedia, "send the body without a Content-Encoding")
		}
	}
	values := r.Request.Header["Content-Type"]
	if len(values) == 0 || len(values) == 1 && (values[0] == "" || values[0] == "application/json") {
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

// maxField bounds the field that an error repeats, in bytes. Lock tokens are longer.
const maxField = 60

// explain turns a decoder's error into one that names the field.
func explain(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	field, detail := "", ""
	switch {
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		field, detail = fieldAt(syntax.JSONPointer), "must not be there twice"
	case syntax != nil || !errors.As(err, &semantic):
		return lock.Errorf(lock.InvalidRequest, "the body is not valid JSON; send one JSON object")
	case errors.Is(err, json.ErrUnknownName):
		field, detail = fieldAt(semantic.JSONPointer), notKnown
	default:
		field, detail = fieldAt(semantic.JSONPointer), "must be "+describeType(wanted(semantic))
	}
	if len(field) > maxField {
		return lock.Errorf(lock.InvalidRequest, "a field of the body %s", detail)
	}
	return lock.Invalid(field, "%s", detail)
}

// wanted returns the type that the field has. The numbers of package api report it themselves.
func wanted(err *json.SemanticError) reflect.Type {
	var number *v1.UnmarshalTypeError
	if errors.As(err, &number) {
		return number.Type
	}
	return err.GoType
}

// fieldAt returns the path that a pointer names, as in locks[0].name.
func fieldAt(p jsontext.Pointer) string {
	var path strings.Builder
	for name := range p.Tokens() {
		switch _, err := strconv.Atoi(name); {
		case err == nil:
			path.WriteString("[" + name + "]")
		case path.Len() > 0:
			path.WriteString("." + name)
		default:
			path.WriteString(name)
		}
	}
	return path.String()
}

func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Int:
		return "a whole number"
	case reflect.Uint:
		return "a whole number from 0 up"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "of another type"
}
