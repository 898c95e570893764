package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// timeout is when the agent ends a hook: after its default wait, and some more.
const timeout = 30 // seconds

// Change is a file as it is, and as the installation would have it; a nil text is no file.
type Change struct {
	Path          string
	Before, After []byte
}

// Changes install the hooks of an agent, or of git, for the work tree in a folder, or remove them.
// Everything else in the files stays.
func Changes(name, folder string, remove bool) ([]Change, error) {
	if name == "git" {
		return gitChanges(folder, remove)
	}
	a, err := agentOf(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, filepath.FromSlash(a.settings))
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh, err := settings(name, a, text, remove)
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
func settings(name string, a agent, text []byte, remove bool) ([]byte, error) {
	command, all := "fencepost hook "+name, map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	hooks, isObject := all["hooks"].(map[string]any)
	if !isObject {
		hooks = map[string]any{}
	}
	for event, value := range hooks {
		groups, _ := value.([]any)
		groups = slices.DeleteFunc(groups, func(group any) bool {
			text, _ := json.Marshal(group) // of what was parsed
			return bytes.Contains(text, []byte(`"command":"`+command))
		})
		if hooks[event] = groups; len(groups) == 0 {
			delete(hooks, event)
		}
	}
	for event, kind := range a.events {
		if remove {
			break
		}
		group := map[string]any{"hooks": []any{map[string]any{
			"type": "command", "command": command, "timeout": timeout * a.unit,
		}}}
		switch kind {
		case before:
			group["matcher"] = strings.Join(slices.Concat(a.edits, a.shells), "|")
		case after:
			group["matcher"] = strings.Join(a.shells, "|")
		}
		groups, _ := hooks[event].([]any)
		hooks[event] = append(groups, group)
	}
	if all["hooks"] = hooks; len(hooks) == 0 {
		delete(all, "hooks")
	}
	if len(all) == 0 {
		return nil, nil
	}
	var fresh bytes.Buffer
	e := json.NewEncoder(&fresh)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(all)
	return fresh.Bytes(), err
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
		switch isOurs := bytes.Equal(c.Before, c.After); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case remove && !isOurs:
			continue
		case remove:
			c.After = nil
		case err == nil && !isOurs:
			return nil, fmt.Errorf("%s exists: add the command %q to it", c.Path, line)
		}
		all = append(all, c)
	}
	return all, nil
}
