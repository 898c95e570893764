package engine

import (
	"bytes"
	"strings"
)

// Form is a record's value as stores keep it: a header line, then the value unchanged, so that a
// person can read it. The line is "1 <mark> <life>".
type Form struct {
	Mark  string // random, of the call that wrote it
	Life  string // that it is bound to; or ""
	Value []byte
}

// noLife marks a record without a life.
const noLife = "-"

// Encode returns the bytes to store.
func (f Form) Encode() []byte {
	life := f.Life
	if life == "" {
		life = noLife
	}
	return append([]byte("1 "+f.Mark+" "+life+"\n"), f.Value...)
}

// ParseForm parses a stored record. Data without the header, written by hand or by a later
// version, is a plain value: only its writer can interpret it.
func ParseForm(data []byte) Form {
	line, value, found := bytes.Cut(data, []byte("\n"))
	parts := strings.Split(string(line[:min(len(line), 200)]), " ")
	if !found || len(parts) != 3 || parts[0] != "1" || parts[1] == "" {
		return Form{Value: data}
	}
	f := Form{Mark: parts[1], Life: parts[2], Value: value}
	if f.Life == noLife {
		f.Life = ""
	}
	return f
}
