package quota

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Overrides are the limits of one tenant that differ from the defaults, by their names.
type Overrides map[string]int

// Over returns the defaults with what differs from them. It ignores limits of a later version.
func (o Overrides) Over(defaults *Limits) *Limits {
	out := *defaults
	for name, n := range o {
		if l, ok := Named(name); ok {
			out[l] = n
		}
	}
	return &out
}

// UnmarshalJSON reads numbers by names. It ignores limits of a later version. A number that is out
// of bounds is an error.
func (o *Overrides) UnmarshalJSON(text []byte) error {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	if named == nil {
		return errors.New("there are no limits")
	}
	read := Overrides{}
	for name, raw := range named {
		l, known := Named(name)
		if !known {
			continue
		}
		var n *int
		if err := json.Unmarshal(raw, &n); err != nil || n == nil {
			return fmt.Errorf("%s is no number", l)
		}
		if wrong := l.Check(*n); wrong != "" {
			return fmt.Errorf("%s %s", l, wrong)
		}
		read[name] = *n
	}
	*o = read
	return nil
}
