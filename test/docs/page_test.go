package docs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// block is a fenced block of a page.
type block struct {
	line   int      // of its opening fence, from 1
	lang   string   // first word of the info string
	words  []string // other words of the info string
	indent string   // of the fence, in a list
	lines  []string
}

func (b *block) is(word string) bool { return slices.Contains(b.words, word) }

func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// file returns the name under which the block asks to be saved, or "".
func (b *block) file() string {
	for _, word := range b.words {
		if name, ok := strings.CutPrefix(word, "file="); ok {
			return filepath.Base(name)
		}
	}
	return ""
}

// blocks returns the fenced blocks of a page.
func blocks(page string) []*block {
	var found []*block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch info, fence := strings.CutPrefix(trimmed, "```"); {
		case open != nil && trimmed == "```":
			open = nil
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, open.indent))
		case fence:
			open = &block{line: i + 1, indent: line[:len(line)-len(trimmed)]}
			if words := strings.Fields(info); len(words) > 0 {
				open.lang, open.words = words[0], words[1:]
			}
			found = append(found, open)
		}
	}
	return found
}

// marker begins the output of the block whose opening fence is on a line of the page.
const marker = "##block "

// trap reports the line of the page at which a command failed.
const trap = `trap 'echo "line $LINENO failed: $BASH_COMMAND" >&2' ERR; `

// script returns a bash script that runs the page's blocks in order. Its lines have the numbers
// that they have on the page, so that an error of bash names the line of the page.
func script(found []*block) (string, error) {
	var lines []string
	put := func(at int, line string) {
		for len(lines) < at {
			lines = append(lines, "")
		}
		lines[at-1] += line
	}
	put(1, "set -ao pipefail; ")
	for _, b := range found {
		if !b.is("run") {
			continue
		}
		// On a line of its own, also if the answer before it ends without a newline.
		put(b.line, fmt.Sprintf(`printf '\n%s%d\n'; `, marker, b.line))
		if b.is("refused") { // until the next block
			put(b.line, "set +e; trap - ERR; ")
		} else {
			put(b.line, "set -e; "+trap)
		}
		if b.lang == "sh" || b.lang == "bash" {
			for i, line := range b.lines {
				put(b.line+1+i, line)
			}
			continue
		}
		command, err := program(b)
		if err != nil {
			return "", err
		}
		if b.is("background") {
			command += " &"
		}
		put(b.line, command)
	}
	lines = append(lines, "set -e; "+trap)
	for name := range programs(found) {
		lines = append(lines, fmt.Sprintf(`printf '\n%s%s\n'; %s`, marker, name, command(name)))
	}
	return strings.Join(lines, "\n") + "\ntrue\n", nil
}

// programs returns what the blocks marked part make together, a program of each language, by the
// name of its file. The last brace of Go is left out on the page, since more parts follow.
func programs(found []*block) map[string]string {
	of := map[string]string{}
	for _, b := range found {
		if b.is("part") {
			of["parts"+extension(b.lang)] += b.text()
		}
	}
	if of["parts.go"] != "" {
		of["parts.go"] += "}\n"
	}
	return of
}

// program returns the command that runs a block of another language than bash.
func program(b *block) (string, error) {
	if name := command(b.name()); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("line %d: nothing runs the language %q", b.line, b.lang)
}

// command returns what runs a file.
func command(name string) string {
	switch filepath.Ext(name) {
	case ".py":
		return "python3 -u " + name
	case ".mjs":
		return "node " + name
	case ".go":
		return `go -C "$FENCEPOST_SOURCE" run "$PWD/` + name + `"`
	}
	return ""
}

// name returns the file of a block of another language than bash.
func (b *block) name() string {
	if name := b.file(); name != "" {
		return name
	}
	return fmt.Sprintf("block-%d%s", b.line, extension(b.lang))
}

func extension(lang string) string {
	return map[string]string{"python": ".py", "js": ".mjs", "go": ".go"}[lang]
}

// printed returns what each block printed, by the line of its fence.
func printed(output string) map[string]string {
	of := map[string]string{}
	line := ""
	for text := range strings.Lines(output) {
		if at, ok := strings.CutPrefix(text, marker); ok {
			line = strings.TrimSpace(at)
			continue
		}
		of[line] += text
	}
	return of
}

// hasFields reports whether an answer has all that an example of it shows, each of the same kind.
// Lists of an answer can be empty.
func hasFields(example, answer any) bool {
	switch example := example.(type) {
	case map[string]any:
		object, ok := answer.(map[string]any)
		for name, value := range example {
			found, has := object[name]
			ok = ok && has && hasFields(value, found)
		}
		return ok
	case []any:
		list, ok := answer.([]any)
		return ok && (len(list) == 0 || len(example) == 0 || hasFields(example[0], list[0]))
	}
	return reflect.TypeOf(example) == reflect.TypeOf(answer)
}

// answers reports whether the last line that a block printed is an answer like the example.
func answers(example *block, got string) bool {
	lines := strings.Split(strings.TrimSpace(got), "\n")
	var shown, answer any
	return json.Unmarshal([]byte(example.text()), &shown) == nil &&
		json.Unmarshal([]byte(lines[len(lines)-1]), &answer) == nil && hasFields(shown, answer)
}

// agrees reports whether each line of a block marked output is in what the run block before it
// printed, in order; … stands for any text.
func agrees(want *block, got string) bool {
	var parts []string
	for _, line := range want.lines {
		parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*"))
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, ".*")).MatchString(got)
}
