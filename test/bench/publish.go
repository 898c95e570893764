package main

import (
	"fmt"
	"os"
	"strings"
)

const publishedEnd = "<!-- end -->"

// published is a document in which the program writes a table, between its marker and
// [publishedEnd]. The marker names the rows, so that a document can have several tables.
type published struct{ file, marker string }

// cut returns what comes before the table and what after it. It fails if the document has no
// place for these rows.
func (p published) cut() (before, after string, err error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return "", "", err
	}
	before, rest, begins := strings.Cut(string(text), p.marker)
	_, after, ends := strings.Cut(rest, publishedEnd)
	if !begins || !ends {
		return "", "", fmt.Errorf("%s has no %q before %q", p.file, p.marker, publishedEnd)
	}
	return before + p.marker, publishedEnd + after, nil
}

func (p published) write(table string) error {
	before, after, err := p.cut()
	if err != nil {
		return err
	}
	return os.WriteFile(p.file, []byte(before+"\n\n"+table+"\n"+after), 0o644)
}

// publishing returns the document for the rows, or nil if there is none.
func (o *options) publishing() (*published, error) {
	if o.publish == "" {
		return nil, nil
	}
	p := &published{o.publish, fmt.Sprintf("<!-- bench -rows %s -->", o.rows)}
	_, _, err := p.cut()
	return p, err
}
