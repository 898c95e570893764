package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// margin is how much longer than its wait a hook may take before the agent ends it.
const margin = 10 * time.Second

// Change is a file as it is, and as the installation would have it; a nil text is no file.
type Change struct {
	Path          string
	Before, After []byte
}

// Changes install the hooks of an agent, or of git, for the work tree in a folder, or remove them.
// Everything else in the files stays.
func (h *Hook) Changes(name, folder string, remove bool) ([]Change, error) {
	if name == "git" {
		return gitChanges(folder, remove)
	}
	a, known := agents()[name]
	if !known {
		return nil, fmt.Errorf("the hooks of %s are not known, only those of git, %s", name,
			strings.Join(Agents(), ", "))
	}
	path := filepath.Join(folder, filepath.FromSlash(a.settings))
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh, err := h.settings(name, a, text, remove)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return []Change{{path, text, fresh}}, nil
}

// Write makes the change.
func (c Change) Write() error {
	if c.After == nil {
		return os.Remove(c.Path)
	}
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(c.After, []byte("#!")) {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.Path, c.After, mode)
}

// settings returns the settings of an agent with the hooks, or without them.
func (h *Hook) settings(name string, a agent, text []byte, remove bool) ([]byte, error) {
	command := "fencepost hook " + name
	all, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	hooks, err := parseObject(all.get("hooks"))
	if err != nil {
		return nil, err
	}
	for _, event := range hooks {
		var groups []json.RawMessage
		if err := json.Unmarshal(event.Value, &groups); err != nil {
			return nil, err
		}
		groups = slices.DeleteFunc(groups, func(g json.RawMessage) bool {
			return bytes.Contains(g, []byte(`"`+command+`"`))
		})
		hooks = hooks.set(event.Key, groups)
	}
	for _, event := range slices.Sorted(maps.Keys(a.events)) {
		if remove {
			break
		}
		group := map[string]any{"hooks": []any{map[string]any{
			"type": "command", "command": command, "timeout": int((h.Wait + margin).Seconds()) * a.unit,
		}}}
		switch a.events[event] {
		case before:
			group["matcher"] = strings.Join(slices.Concat(a.edits, a.shells), "|")
		case after:
			group["matcher"] = strings.Join(a.shells, "|")
		}
		var groups []any
		_ = json.Unmarshal(hooks.get(event), &groups) // checked above
		hooks = hooks.set(event, append(groups, group))
	}
	return all.set("hooks", hooks).text()
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	Key   string
	Value json.RawMessage
}

func parseObject(text []byte) (object, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	var o object
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return o, nil
		}
		if key, isText := token.(string); isText {
			o = append(o, member{key, values[key]})
			var value json.RawMessage
			_ = d.Decode(&value) // checked above
		}
	}
}

func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// set replaces a member. An empty list or object is none.
func (o object) set(key string, value any) object {
	text, _ := json.Marshal(value) // of what was parsed, or is text
	o = slices.Clone(o)
	i := slices.IndexFunc(o, func(m member) bool { return m.Key == key })
	switch empty := string(text) == "[]" || string(text) == "{}" || string(text) == "null"; {
	case empty && i >= 0:
		return slices.Delete(o, i, i+1)
	case empty:
	case i >= 0:
		o[i].Value = text
	default:
		o = append(o, member{key, text})
	}
	return o
}

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	parts := make([]string, 0, len(o))
	for _, m := range o {
		key, err := json.Marshal(m.Key)
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(key)+":"+string(m.Value))
	}
	return []byte("{" + strings.Join(parts, ",") + "}"), nil
}

// text is the object for people; nil if it is empty.
func (o object) text() ([]byte, error) {
	if len(o) == 0 {
		return nil, nil
	}
	text, err := json.MarshalIndent(o, "", "  ")
	return append(text, '\n'), err
}

// gitChanges writes hooks only where there are none: two could not both read the input.
func gitChanges(folder string, remove bool) ([]Change, error) {
	var all []Change
	for _, event := range []string{"pre-commit", "pre-push"} {
		command := exec.Command("git", "-C", folder, "rev-parse", "--git-path", "hooks/"+event)
		path, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("git rev-parse: %w", err)
		}
		c := Change{Path: at(folder, strings.TrimSpace(string(path)))}
		line := "fencepost hook git " + event
		c.After = []byte("#!/bin/sh\nexec " + line + "\n")
		c.Before, err = os.ReadFile(c.Path)
		isOurs := bytes.Equal(c.Before, c.After)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case err == nil && !isOurs && !remove:
			return nil, fmt.Errorf("%s exists: add the command %q to it", c.Path, line)
		case remove && isOurs:
			c.After = nil
			all = append(all, c)
		case !remove && !isOurs:
			all = append(all, c)
		}
	}
	return all, nil
}
