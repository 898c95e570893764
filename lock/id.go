package lock

import (
	"crypto/sha256"
	"encoding/base32"
)

// IDSize is the number of bytes behind an id.
const IDSize = 16

// idEncoding is Crockford's alphabet in lower case, in which no letter looks like a digit.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding) //nolint:gochecknoglobals // never changes, like base32.StdEncoding

// IDOf returns the id that stands for [IDSize] bytes.
func IDOf(raw []byte) ID { return ID(idEncoding.EncodeToString(raw)) }

// ValidID reports whether a text can be an id.
func ValidID(text string) bool { return string(IDOf(ID(text).AppendBytes(nil))) == text }

// AppendBytes appends the [IDSize] bytes behind the id. For an id that was written by hand they
// are a hash.
func (id ID) AppendBytes(to []byte) []byte {
	raw, err := idEncoding.AppendDecode(to, []byte(id))
	if err != nil || len(raw) != len(to)+IDSize {
		sum := sha256.Sum256([]byte(id))
		return append(to, sum[:IDSize]...)
	}
	return raw
}
