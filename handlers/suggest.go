package handlers

import (
	"errors"
	"reflect"
	"strings"

	"github.com/fencepost/fencepost/lock"
)

// notKnown is what is said of a field that there is not.
const notKnown = "is not known here"

// suggestField adds to an error about an unknown field the known one that is most like it.
// v is what the body was decoded into.
func suggestField(err error, v any) error {
	var e *lock.Error
	if !errors.As(err, &e) || !strings.HasSuffix(e.Detail, " "+notKnown) {
		return err
	}
	return suggest(e, e.Field[strings.LastIndexByte(e.Field, '.')+1:], fieldsIn(reflect.TypeOf(v)))
}

// suggest adds to an error about an unknown name the known one that is most like it, if one is.
func suggest(e *lock.Error, name string, known []string) *lock.Error {
	if meant := nearest(name, known); meant != "" {
		return advise(e, "; did you mean "+meant+"?")
	}
	return advise(e, "; leave it out")
}

// advise returns a copy of an error with an addition to its detail.
func advise(e *lock.Error, advice string) *lock.Error {
	better := *e
	better.Detail += advice
	return &better
}

// fieldsIn lists the names of all fields that the JSON of a type can have, at any depth.
func fieldsIn(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, fieldsIn(f.Type)...)
	}
	return names
}

// longestName is how long a name is for which another is suggested, in bytes.
const longestName = 40

// nearest returns the known name that is most like a name, "" if none is: it differs in few
// letters, in how words are separated, or by a word that was left out.
func nearest(name string, known []string) (found string) {
	if len(name) < 2 || len(name) > longestName {
		return ""
	}
	plain, best := letters(name), max(1, len(name)/4)+1
	for _, k := range known {
		if d := distance(plain, letters(k)); d < best && k != name {
			found, best = k, d
		}
	}
	for i := 0; found == "" && i < len(known); i++ {
		if len(plain) > 2 && strings.HasPrefix(known[i], strings.ToLower(name)+"_") {
			found = known[i]
		}
	}
	return found
}

// letters leaves out of a name how its words are separated.
func letters(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance is how many letters have to be put in, left out, replaced, or swapped with the
// next one to make one name of another.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := last[j-1]
			if a[i-1] != b[j-1] {
				same++
			}
			row[j] = min(same, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
