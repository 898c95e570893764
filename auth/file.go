package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	maxPrincipals = 10_000 // of one file

	// A message has what is wrong with so many of them, in so many bytes at most for each.
	maxWrongPrincipals = 10
	maxWrongText       = 500
)

// keptFile is what a file says that is read again. It is safe for concurrent use.
type keptFile[T any] struct {
	file    string
	parse   func(text []byte) (T, error)
	changed *signal // or nil

	mu    sync.RWMutex
	read  bool
	text  []byte // what is in use, as it was read
	value T
}

// Refresh reads the file again and reports whether its content has changed. After an error the
// last content stays in use.
func (f *keptFile[T]) Refresh() (changed bool, err error) {
	text, err := fileSource(f.file).read(context.Background())
	if err != nil {
		return false, err
	}
	if changed, err = f.replace(text); changed && f.changed != nil {
		f.changed.change()
	}
	return changed, err
}

func (f *keptFile[T]) replace(text []byte) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read && bytes.Equal(text, f.text) {
		return false, nil
	}
	value, err := f.parse(withoutMark(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.file, err)
	}
	f.read, f.text, f.value = true, text, value
	return true, nil
}

// inUse is what the file said when it was last read. It must not be changed.
func (f *keptFile[T]) inUse() T {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.value
}

// rights are what an entry of a file grants.
type rights struct {
	Tenant string    `json:"tenant"`
	Scopes []Scope   `json:"scopes"`
	Locks  *[]string `json:"locks"`
}

// principal holds what the entry says to the rules of tokens. A scope that is not known is
// refused: it would be a mistyped one. The error has all that is wrong; there is a principal
// with it too, which must not be used.
func (e *rights) principal() (*Principal, error) {
	p := &Principal{Tenant: e.Tenant, Scopes: slices.Compact(slices.Sorted(slices.Values(e.Scopes)))}
	wrong := []error{detailOf(checkTenant("tenant", e.Tenant))}
	for _, s := range p.Scopes {
		if !known(s) {
			wrong = append(wrong, fmt.Errorf("scope %q is not known", s))
		}
	}
	patterns, err := e.patterns()
	p.Locks = patterns
	return p, errors.Join(append(wrong, err)...)
}

// patterns returns nil only if there is no list: an empty list allows no lock.
func (e *rights) patterns() ([]Pattern, error) {
	if e.Locks == nil {
		return nil, nil
	}
	if len(*e.Locks) > maxPatterns {
		return nil, fmt.Errorf("locks has more than %d patterns", maxPatterns)
	}
	patterns := []Pattern{}
	for _, text := range *e.Locks {
		pattern, err := ParsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("locks: %w", err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// principalsOf reads the entries of a file's list "principals". Its error has what is wrong with
// each, in one line.
func principalsOf(text []byte, each func(raw json.RawMessage) error) error {
	var file struct {
		Principals []json.RawMessage `json:"principals"`
	}
	if err := strictly(text, &file, "principals"); err != nil {
		return err
	}
	switch {
	case file.Principals == nil:
		return errors.New("it has no list of principals")
	case len(file.Principals) > maxPrincipals:
		return fmt.Errorf("it has more than %d principals", maxPrincipals)
	}
	var wrong []string
	for i, raw := range file.Principals {
		err := each(raw)
		if err != nil && len(wrong) == maxWrongPrincipals {
			wrong = append(wrong, "and there are more")
			break
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("principal %d: %s", i+1, inOneLine(err)))
		}
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func inOneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", ", ")
	if len(text) > maxWrongText {
		text = strings.ToValidUTF8(text[:maxWrongText], "") + "…"
	}
	return text
}

// strictly reads an object with these members and no others, none of them twice or null.
func strictly(text []byte, v any, names ...string) error {
	if !json.Valid(text) {
		return errors.New("it is not valid JSON")
	}
	var members claims
	if err := members.UnmarshalJSON(text); err != nil {
		return err
	}
	for name, raw := range members {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%q is not known here", name)
		}
		if string(raw) == "null" {
			return fmt.Errorf("%s is null", name)
		}
	}
	return json.Unmarshal(text, v)
}

// detailOf is what a refusal says, without that it is of a bearer token.
func detailOf(err error) error {
	var refused *Error
	if errors.As(err, &refused) {
		return errors.New(refused.Detail)
	}
	return err
}
