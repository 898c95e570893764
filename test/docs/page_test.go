package docs

import (
	"fmt"
	"path/filepath"
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
	return strings.Join(lines, "\n") + "\ntrue\n", nil
}

// program returns the command that runs a block of another language than bash.
func program(b *block) (string, error) {
	switch name := b.name(); b.lang {
	case "python":
		return "python3 -u " + name, nil
	case "js":
		return "node " + name, nil
	case "go":
		return `go -C "$FENCEPOST_SOURCE" run "$PWD/` + name + `"`, nil
	}
	return "", fmt.Errorf("line %d: nothing runs the language %q", b.line, b.lang)
}

// name returns the file of a block of another language than bash.
func (b *block) name() string {
	if name := b.file(); name != "" {
		return name
	}
	extension := map[string]string{"python": ".py", "js": ".mjs", "go": ".go"}[b.lang]
	return fmt.Sprintf("block-%d%s", b.line, extension)
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

// agrees reports whether each line of a block marked output is in what the run block before it
// printed, in order; … stands for any text.
func agrees(want *block, got string) bool {
	var parts []string
	for _, line := range want.lines {
		parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*"))
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, ".*")).MatchString(got)
}
