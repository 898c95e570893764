package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// event is what an agent reports, whatever it calls it.
type event int

const (
	before event = iota + 1 // a tool runs
	after
	begins // a session
	stops  // a turn
	ends   // a session
)

// agent is the protocol of an agent's hooks: a JSON object in, and one out.
type agent struct {
	settings string // file of a project
	events   map[string]event
	edits    []string // tools that write a file
	shells   []string // tools that run a command
	unit     int      // timeouts for each second
	isFlat   bool     // whether its answers are one object
}

// agents whose documents describe a hook that can refuse a tool call:
// https://code.claude.com/docs/en/hooks, https://developers.openai.com/codex/hooks,
// https://geminicli.com/docs/hooks/reference.
func agents() map[string]agent {
	turns := map[string]event{
		"PreToolUse": before, "PostToolUse": after, "SessionStart": begins, "Stop": stops,
		"SessionEnd": ends,
	}
	return map[string]agent{
		"claude": {
			settings: ".claude/settings.json", events: turns, unit: 1,
			edits:  []string{"Edit", "MultiEdit", "Write", "NotebookEdit"},
			shells: []string{"Bash"},
		},
		"codex": {
			settings: ".codex/hooks.json", events: turns, unit: 1,
			edits: []string{"apply_patch"}, shells: []string{"Bash"},
		},
		"gemini": {
			settings: ".gemini/settings.json", unit: 1000, isFlat: true,
			events: map[string]event{
				"BeforeTool": before, "AfterTool": after, "AfterAgent": stops, "SessionEnd": ends,
			},
			edits: []string{"write_file", "replace"}, shells: []string{"run_shell_command"},
		},
	}
}

// Agents names the agents whose hooks are known.
func Agents() string {
	return strings.Join(slices.Sorted(maps.Keys(agents())), ", ")
}

func agentOf(name string) (agent, error) {
	a, known := agents()[name]
	if !known {
		return a, fmt.Errorf("the hooks of %s are not known, only those of %s", name, Agents())
	}
	return a, nil
}

// answer refuses the call for a reason, or warns the user. Without either the agent continues as if
// there were no hook.
func (a agent) answer(out io.Writer, event, reason, warning string) error {
	var answer map[string]any
	switch {
	case warning != "":
		answer = map[string]any{"systemMessage": warning}
	case reason == "":
		return nil
	case a.isFlat:
		answer = map[string]any{"decision": "deny", "reason": reason}
	default:
		answer = map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason,
		}}
	}
	return json.NewEncoder(out).Encode(answer)
}

// call is what an agent sends.
type call struct {
	Session string `json:"session_id"`
	Folder  string `json:"cwd"`
	Event   string `json:"hook_event_name"`
	Tool    string `json:"tool_name"`
	Input   struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Command  any    `json:"command"`
	} `json:"tool_input"`
}

func (c *call) command() string {
	text, _ := c.Input.Command.(string)
	return text
}

// inPatch are the files that a patch of Codex names.
var inPatch = regexp.MustCompile(
	`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\r?$`)

// files that the call writes.
func (a agent) files(c *call) []string {
	if !slices.Contains(a.edits, c.Tool) {
		return nil
	}
	names := []string{c.Input.File, c.Input.Notebook}
	for _, match := range inPatch.FindAllStringSubmatch(c.command(), -1) {
		names = append(names, match[1])
	}
	var files []string
	for _, file := range names {
		if file != "" {
			files = append(files, at(c.Folder, file))
		}
	}
	return files
}

// at is a path as the agent means it. It stays unclean: only the disk knows where dots lead.
func at(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return folder + string(filepath.Separator) + path
}

// gitCommand is a call of git that writes what others of the repository use.
var gitCommand = regexp.MustCompile(
	`\bgit((?:\s+-[cC]\s+\S+|\s+--?[\w-]+(?:=\S+)?)*)\s+` +
		`(commit|push|checkout|switch|restore|reset|clean|stash|merge|rebase|pull)\b`)

// gitCalls are the folders where the command calls git, and whether that changes files of the work
// tree.
func (a agent) gitCalls(c *call) map[string]bool {
	calls := map[string]bool{}
	if !slices.Contains(a.shells, c.Tool) {
		return calls
	}
	for _, match := range gitCommand.FindAllStringSubmatch(c.command(), -1) {
		folder, options := c.Folder, strings.Fields(match[1])
		if i := slices.Index(options, "-C"); i >= 0 && i+1 < len(options) {
			folder = at(folder, options[i+1])
		}
		calls[folder] = calls[folder] || match[2] != "commit" && match[2] != "push"
	}
	return calls
}
