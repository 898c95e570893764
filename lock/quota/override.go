package quota

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Overrides are the limits of one tenant that differ from the defaults.
type Overrides map[Limit]int

// Over returns the defaults with what differs from them.
func (o Overrides) Over(defaults *Limits) *Limits {
	out := *defaults
	for l, n := range o {
		out[l] = n
	}
	return &out
}

// MarshalJSON writes the numbers by the names of their limits.
func (o Overrides) MarshalJSON() ([]byte, error) {
	return json.Marshal(o.Named())
}

// Named returns the numbers by the names of their limits.
func (o Overrides) Named() map[string]int {
	named := make(map[string]int, len(o))
	for l, n := range o {
		named[l.String()] = n
	}
	return named
}

// Known returns the numbers of the limits that there are, by their names.
func Known(named map[string]int) Overrides {
	o := Overrides{}
	for _, l := range All() {
		if n, set := named[l.String()]; set {
			o[l] = n
		}
	}
	return o
}

// UnmarshalJSON reads what MarshalJSON wrote. A limit that is not known is one of a later version and
// passed over; a number that is out of bounds is an error.
func (o *Overrides) UnmarshalJSON(text []byte) error {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	if named == nil {
		return errors.New("there are no limits")
	}
	read := Overrides{}
	for _, l := range All() {
		raw, set := named[l.String()]
		if !set {
			continue
		}
		var n *int
		if err := json.Unmarshal(raw, &n); err != nil || n == nil {
			return fmt.Errorf("%s is no number", l)
		}
		if wrong := l.Check(*n); wrong != "" {
			return fmt.Errorf("%s %s", l, wrong)
		}
		read[l] = *n
	}
	*o = read
	return nil
}
