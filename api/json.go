package api

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode appends a value as JSON as programs read it: <, > and & stay as they are,
// since escapes would make six bytes of each.
func Encode(text *bytes.Buffer, value any) error {
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	text.Truncate(text.Len() - 1) // of the line break
	return nil
}

func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	err := Encode(&text, value)
	return text.Bytes(), err
}

// readState reads a value into the one of two forms that its state names.
func readState[H, W any](text []byte) (held *H, waiting *W, err error) {
	var v struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, nil, err
	}
	switch v.State {
	case "held":
		held = new(H)
		return held, nil, json.Unmarshal(text, held)
	case "waiting":
		waiting = new(W)
		return nil, waiting, json.Unmarshal(text, waiting)
	}
	return nil, nil, fmt.Errorf("api: unknown state %q", v.State)
}
