package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// referencePage is the reference of the HTTP API, which the document makes.
const referencePage = "../docs/reference/api.md"

// reference writes the page.
type reference struct {
	doc      *openapi3.T
	snippets map[string]snippets
	shown    map[string]string // headings by the answers below them
	rows     map[string]string // headings by the rows of their tables
	bytes.Buffer
}

// writeReference returns the page of a document.
func writeReference(doc *openapi3.T) ([]byte, error) {
	read, err := readSnippets()
	if err != nil {
		return nil, err
	}
	head, err := snippetFiles.ReadFile("snippets/head.txt")
	if err != nil {
		return nil, err
	}
	r := &reference{doc: doc, snippets: read, shown: map[string]string{}, rows: map[string]string{}}
	r.Write(head)
	r.languages(r.snippets["start"])
	for _, s := range sections() {
		fmt.Fprintf(r, "\n## %s\n\n%s\n", s.title, s.about)
		r.index(s)
		if s.before != "" {
			r.block("sh run", s.before)
		}
		var plain snippets
		for _, c := range s.calls {
			if err := r.operation(c, &plain); err != nil {
				return nil, fmt.Errorf("%s: %w", c.operation, err)
			}
		}
		r.languages(plain)
	}
	r.rest()
	return bytes.ReplaceAll(r.Bytes(), []byte("\n\n\n"), []byte("\n\n")), r.complete()
}

// operationOf returns an operation with its method and path.
func (r *reference) operationOf(id string) (method, path string, op *openapi3.Operation) {
	for path, item := range r.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == id {
				return method, path, op
			}
		}
	}
	return "", "", nil
}

// index lists the operations of a section.
func (r *reference) index(s section) {
	r.WriteString("\n| | |\n| --- | --- |\n")
	for _, c := range s.calls {
		if method, path, op := r.operationOf(c.operation); op != nil {
			fmt.Fprintf(r, "| [%s](#%s) | `%s %s` |\n", op.Summary, anchor(op.Summary), method, path)
		}
	}
}

func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ",", "")), " ", "-")
}

var scope = regexp.MustCompile(`\s*Needs the scope (.*)\.$`)

// operation writes one operation with its example. It adds to plain what no client has.
func (r *reference) operation(c call, plain *snippets) error {
	method, path, op := r.operationOf(c.operation)
	if op == nil {
		return errors.New("the document has no such operation")
	}
	needs, about := "", scope.ReplaceAllString(op.Description, "")
	if found := scope.FindStringSubmatch(op.Description); found != nil {
		needs = " · scope " + found[1]
	}
	fmt.Fprintf(r, "\n### %s\n\n`%s %s`%s\n\n%s\n\n", op.Summary, method, path, needs, about)
	r.fields(op)
	r.answers(op)
	e, err := r.example(c, method, path, op)
	if err != nil {
		return err
	}
	r.block("sh run", e.curl(c))
	r.answered(op)
	if own, found := r.snippets[c.operation]; found {
		r.languages(own)
	} else if slices.Contains(op.Tags, "locksets") {
		r.languages(e.snippets())
	} else if !e.stream {
		plain.add(e.snippets())
	}
	return nil
}

// streamed is what a stream of events sends.
const streamed = `event: lock.acquired
data: {"id":"…","type":"lock.acquired",…"lock":"orders:42",…`

// answered shows an answer, or where it was shown before.
func (r *reference) answered(op *openapi3.Operation) {
	answer := r.answer(op)
	switch heading := r.shown[answer]; {
	case streams(op):
		r.block("output", streamed)
	case answer == "":
	case heading != "":
		fmt.Fprintf(r, "\nIts answer: [%s](#%s).\n", heading, anchor(heading))
	default:
		r.shown[answer] = op.Summary
		r.block("json answer", answer)
	}
}

func (r *reference) block(info, text string) {
	fmt.Fprintf(r, "\n```%s\n%s\n```\n", info, strings.TrimSpace(text))
}

// languages writes an example in each language, folded.
func (r *reference) languages(s snippets) {
	if s.python == "" {
		return
	}
	r.WriteString("\n<details><summary>Python, JavaScript, Go</summary>\n")
	r.block("python part", s.python)
	r.block("js part", s.js)
	r.block("go part", s.golang)
	r.WriteString("\n</details>\n")
}

// rest lists the operations that need no example: probes, files, what a browser asks for.
func (r *reference) rest() {
	r.WriteString("\n## Server\n\nThese need no bearer token.\n\n| | |\n| --- | --- |\n")
	for _, path := range slices.Sorted(mapKeys(r.doc.Paths.Map())) {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if op := r.doc.Paths.Value(path).GetOperation(method); op != nil && isRest(op) {
				fmt.Fprintf(r, "| `%s %s` | %s |\n", method, path, op.Summary)
			}
		}
	}
}

func isRest(op *openapi3.Operation) bool { return slices.Equal(op.Tags, []string{"operations"}) }

// complete returns an error if an operation is not on the page.
func (r *reference) complete() error {
	var shown []string
	for _, s := range sections() {
		for _, c := range s.calls {
			shown = append(shown, c.operation)
		}
	}
	for _, item := range r.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if !isRest(op) && !slices.Contains(shown, op.OperationID) {
				return fmt.Errorf("%s needs an example in reference_calls.go", op.OperationID)
			}
		}
	}
	return nil
}
