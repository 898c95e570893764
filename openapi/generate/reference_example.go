package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// call is an example of an operation. $NAME in it is a variable of the page; in a body it is
// "$NAME" of a text and "#NAME" of a number.
type call struct {
	operation string
	query     string
	body      string // JSON; of the document if it is empty
	header    string // beside those that are required
	before    string // commands
	after     string // commands
}

// section is a part of the page.
type section struct {
	title, about string
	before       string // commands
	calls        []call
}

// example is a call with what the document says about it.
type example struct {
	method, path string // with the query
	body         string
	headers      []string // besides Authorization
	lockToken    string   // variable
	stream       bool
}

func (r *reference) example(
	c call, method, path string, op *openapi3.Operation,
) (*example, error) {
	e := &example{method: method, body: c.body, stream: streams(op)}
	e.path = strings.NewReplacer(
		"{name}", "orders:42", "{tenant}", "demo", "{delivery}", "$DELIVERY", "{id}", "$"+idOf(path),
	).Replace(path) + c.query
	if c.header != "" {
		e.headers = append(e.headers, c.header)
	}
	if slices.ContainsFunc(op.Parameters, needsLockToken) {
		e.lockToken = strings.Replace(idOf(path)+"_TOKEN", "ENTRY", "LOCK", 1)
		e.headers = append(e.headers, "Lock-Token: $"+e.lockToken)
	}
	if op.RequestBody == nil || e.body != "" {
		return e, nil
	}
	body, err := json.Marshal(bodyExample(op.RequestBody.Value.Content[jsonType]))
	e.body = string(body)
	return e, err
}

func needsLockToken(p *openapi3.ParameterRef) bool { return p.Value.Name == "Lock-Token" }

// idOf returns the variable with the id that a path asks for.
func idOf(path string) string {
	for _, kind := range []string{"lockset", "webhook", "closure"} {
		if strings.Contains(path, kind) {
			return strings.ToUpper(strings.TrimPrefix(kind, "lock"))
		}
	}
	return "ENTRY"
}

// bodyExample returns the first example of a body in the document.
func bodyExample(media *openapi3.MediaType) any {
	for _, title := range slices.Sorted(maps.Keys(media.Examples)) {
		return media.Examples[title].Value.Value
	}
	return sample(media.Schema.Value, "", 0)
}

var (
	variable = regexp.MustCompile(`\$([A-Z_]+)`)
	textOf   = regexp.MustCompile(`"\$([A-Z_]+)"`)
	numberOf = regexp.MustCompile(`"#([A-Z_]+)"`)
)

// curl returns the commands of a call.
func (e *example) curl(c call) string {
	var b strings.Builder
	b.WriteString(c.before)
	b.WriteString("curl -s")
	if e.stream {
		b.WriteString("N --max-time 3")
	}
	if e.method != "GET" && (e.method != "POST" || e.body == "") {
		b.WriteString(" -X " + e.method)
	}
	fmt.Fprintf(&b, ` "$FENCEPOST_URL%s" -H "Authorization: Bearer $FENCEPOST_TOKEN"`, e.path)
	for _, header := range e.headers {
		fmt.Fprintf(&b, " \\\n  -H %q", header)
	}
	if e.body != "" {
		body := numberOf.ReplaceAllString(textOf.ReplaceAllString(e.body, `"'$$$1'"`), `'$$$1'`)
		fmt.Fprintf(&b, " \\\n  --json '%s'", body)
	}
	switch {
	case e.stream:
		b.WriteString(" || true")
	case c.after != "":
		b.WriteString(" | tee answer.json\n" + c.after)
	}
	return b.String()
}

// snippets returns a call in each language, with the function send.
func (e *example) snippets() snippets {
	return snippets{python: e.python(), js: e.js(), golang: e.golang()}
}

func (e *example) python() string {
	arguments := []string{fmt.Sprintf("%q", e.method), fmt.Sprintf("%q", e.path)}
	if variable.MatchString(e.path) {
		arguments[1] = "f" + fmt.Sprintf("%q", variable.ReplaceAllString(e.path, "{env['$1']}"))
	}
	if e.body != "" {
		body := numberOf.ReplaceAllString(textOf.ReplaceAllString(e.body, `env["$1"]`), `int(env["$1"])`)
		body = regexp.MustCompile(`\b(true|false)\b`).ReplaceAllStringFunc(body, strings.Title) //nolint:staticcheck // ASCII
		arguments = append(arguments, body)
	}
	if e.lockToken != "" {
		arguments = append(arguments, fmt.Sprintf(`lock_token=env[%q]`, e.lockToken))
	}
	return "send(" + strings.Join(arguments, ", ") + ")"
}

func (e *example) js() string {
	arguments := []string{fmt.Sprintf("%q", e.method), fmt.Sprintf("%q", e.path)}
	if variable.MatchString(e.path) {
		arguments[1] = "`" + variable.ReplaceAllString(e.path, "$${env.$1}") + "`"
	}
	switch {
	case e.body != "":
		arguments = append(arguments, numberOf.ReplaceAllString(
			textOf.ReplaceAllString(e.body, `env.$1`), `Number(env.$1)`))
	case e.lockToken != "":
		arguments = append(arguments, "undefined")
	}
	if e.lockToken != "" {
		arguments = append(arguments, "env."+e.lockToken)
	}
	return "await send(" + strings.Join(arguments, ", ") + ");"
}

func (e *example) golang() string {
	arguments := []string{
		fmt.Sprintf("%q", e.method),
		strings.TrimSuffix(`"`+variable.ReplaceAllString(e.path, `"+env("$1")+"`)+`"`, `+""`),
		`""`, `""`,
	}
	if e.body != "" {
		body := numberOf.ReplaceAllString(
			textOf.ReplaceAllString(e.body, "\"`+env(\"$1\")+`\""), "`+env(\"$1\")+`")
		arguments[2] = "`" + body + "`"
	}
	if e.lockToken != "" {
		arguments[3] = fmt.Sprintf("env(%q)", e.lockToken)
	}
	return "send(" + strings.Join(arguments, ", ") + ")"
}
