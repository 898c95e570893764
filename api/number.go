package api

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decimal is a number of a request as it was written. It is read exactly, so that
// what is compared with a bound is what the client sent and not the nearest binary
// fraction.
type Decimal string

// UnmarshalJSON takes JSON numbers and nothing else: encoding/json would take a
// number in quotes for a number too.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	if !beginsNumber(text) {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[float64]()}
	}
	*d = Decimal(text)
	return nil
}

// MarshalJSON writes the number as it is; nothing is 0.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("0"), nil
	}
	return []byte(d), nil
}

// Duration is the number as one of seconds. A fraction of a nanosecond counts as
// one, away from zero, so that a number beyond a bound stays beyond it. What no
// duration can be becomes the longest one, which is out of all bounds.
func (d Decimal) Duration() time.Duration {
	n, _ := scaled(string(d), 9)
	return time.Duration(n)
}

// Whole is a whole number of a request; 3.0 and 3e0 are 3.
type Whole int

// UnmarshalJSON takes JSON numbers without a fraction. One that is too large for
// any use is the largest int32.
func (w *Whole) UnmarshalJSON(text []byte) error {
	n, exact := scaled(string(text), 0)
	if !beginsNumber(text) || !exact {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[int]()}
	}
	*w = Whole(min(max(n, math.MinInt32), math.MaxInt32))
	return nil
}

func beginsNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// IsDecimal reports whether a text is a number as JSON writes them.
func IsDecimal(text string) bool {
	return beginsNumber([]byte(text)) && json.Valid([]byte(text))
}

// scaled multiplies a JSON number by a power of ten. If something is left behind
// the point it is rounded away from zero, and not exact. A number that does not fit
// becomes the largest or smallest that does.
func scaled(text string, power int) (n int64, exact bool) {
	rest, negative := strings.CutPrefix(text, "-")
	digits, exponent := mantissa(rest)
	sign := int64(1)
	if negative {
		sign = -1
	}
	switch shift := power + exponent; {
	case digits == "":
		return 0, true
	case len(digits)+shift > 18:
		return sign * math.MaxInt64, true
	case shift >= 0:
		n, _ = strconv.ParseInt(digits+strings.Repeat("0", shift), 10, 64)
		return sign * n, true
	case len(digits)+shift <= 0:
		return sign, false
	default:
		n, _ = strconv.ParseInt(digits[:len(digits)+shift], 10, 64)
		return sign * (n + 1), false
	}
}

// mantissa takes a JSON number without its sign apart, into digits with no zero at
// either end and the power of ten that they are multiplied with.
func mantissa(text string) (digits string, exponent int) {
	const absurd = 1 << 20 // beyond the digits of any body
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.Atoi(strings.TrimPrefix(text[i+1:], "+"))
		if err != nil && strings.HasPrefix(text[i+1:], "-") {
			n = -absurd
		} else if err != nil {
			n = absurd
		}
		text, exponent = text[:i], min(max(n, -absurd), absurd)
	}
	before, behind, _ := strings.Cut(text, ".")
	digits = strings.TrimLeft(before+behind, "0")
	kept := strings.TrimRight(digits, "0")
	return kept, exponent - len(behind) + len(digits) - len(kept)
}

// Version is that of something small which is stored, in a request: a whole number, not below 0.
type Version uint64

// UnmarshalJSON takes JSON numbers without a fraction that are not below 0. One that is too large
// for any use is the largest int64.
func (v *Version) UnmarshalJSON(text []byte) error {
	n, exact := scaled(string(text), 0)
	if !beginsNumber(text) || !exact || n < 0 {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[uint]()}
	}
	*v = Version(n)
	return nil
}

// Fence is a fence in a request: a whole number.
type Fence uint64

// UnmarshalJSON takes JSON numbers without a fraction. One below 0 is 0, which is no
// fence, and one that is too large for any use is the largest int64.
func (f *Fence) UnmarshalJSON(text []byte) error {
	n, exact := scaled(string(text), 0)
	if !beginsNumber(text) || !exact {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[int]()}
	}
	*f = Fence(max(n, 0))
	return nil
}
