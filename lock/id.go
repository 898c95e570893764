package lock

import (
	"crypto/sha256"
	"encoding/base32"
)

// IDSize is how many bytes an id stands for.
const IDSize = 16

// idEncoding is Crockford's alphabet in lower case: no letter is taken for a digit.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding) //nolint:gochecknoglobals // never changes, like base32.StdEncoding

// IDOf returns the id that stands for [IDSize] bytes.
func IDOf(raw []byte) ID { return ID(idEncoding.EncodeToString(raw)) }

// ValidID reports whether a text can be an id.
func ValidID(text string) bool { return string(IDOf(ID(text).AppendBytes(nil))) == text }

// AppendBytes appends the [IDSize] bytes that the id stands for. Those of an id that was
// written by hand are a hash of it.
func (id ID) AppendBytes(to []byte) []byte {
	raw, err := idEncoding.AppendDecode(to, []byte(id))
	if err != nil || len(raw) != len(to)+IDSize {
		sum := sha256.Sum256([]byte(id))
		return append(to, sum[:IDSize]...)
	}
	return raw
}
