package architecture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrase is a construction that readers stumble over, and what to write instead.
type phrase struct{ found, instead string }

func phrases() []phrase {
	return []phrase{
		{`whom|whoever|whomever`, "the client, the holder, the operator, …"},
		{`nobody|somebody|everybody`, "no client, another holder, every replica, …"},
		{`who (?:is|has|asks|waits|holds|looks|goes|does|comes|makes|sends|wants|uses|gets|takes|was|` +
			`had|may|cannot)`, "the client that, the holder, users with, …"},
		{`of (?:those|whom|which) `, "a sentence of its own"},
		{`(?:is|are|be|been|was|were) told`, "gets, receives, learns; a program sends, reports"},
		{`(?:is|are) to be`, "must, will"},
		{`comes? to hold`, "is granted, acquires the lock"},
		{`is looked at`, "the server checks"},
		{`anew|once more`, "again"},
		{`dearer|dearest`, "expensive"},
		{`owe[sd]?`, "pending; over the limit"},
		{`lately`, "recently, last 5 min"},
		{`strangers?`, "anonymous, unauthenticated"},
		{`mend(?:s|ed|ing)?`, "fix, repair"},
		{`(?:a|the) whole name`, "exact match"},
		{`lost from sight|store in sight`, "store unreachable, connected to the store"},
		{`half within|99 in 100`, "p50, p99"},
		{`lease (?:that )?ran out`, "expired lease"},
		{`(?:no|any) room`, "space, slot, quota"},
		{`for ever`, "forever"},
	}
}

// anyPhrase finds one of the phrases: most lines have none.
func anyPhrase() *regexp.Regexp {
	var all []string
	for _, p := range phrases() {
		all = append(all, p.found)
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)(?:\b|$)`)
}

// allowedPhrases are lines that mean a thing that has this name.
func allowedPhrases() []string {
	return []string{"user nobody", "nobody is the id of"}
}

var (
	comment = regexp.MustCompile(`^\s*(?://|#[^!]|/?\*)(.*)|\s(?://|/\*) (.*)`)
	literal = regexp.MustCompile(`"[^"]* [^"]*"|>[^<>{}]*<`)
	testers = regexp.MustCompile(`_test\.go$|\.(?:test|spec)\.tsx?$|/tests?/|storetest/|/test_`)
)

// TestProse: documents, comments, and the texts that programs print use the words of the field, and
// name who acts.
func TestProse(t *testing.T) {
	root := filepath.Join("..", "..")
	read, unwanted := 0, anyPhrase()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(unread(), d.Name()):
			return filepath.SkipDir
		}
		if texts := textsOf(path); texts != nil {
			read++
			checkProse(t, path, texts, unwanted)
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Errorf("%d files are read, %v", read, err)
	}
}

func checkProse(t *testing.T, path string, texts func(string) string, unwanted *regexp.Regexp) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(content), "\n") {
		text := texts(line)
		if text == "" || slices.ContainsFunc(allowedPhrases(), func(allowed string) bool {
			return strings.Contains(line, allowed)
		}) {
			continue
		}
		found := unwanted.FindString(text)
		for _, p := range phrases() {
			if found != "" && regexp.MustCompile(`(?i)^(?:`+p.found+`)$`).MatchString(found) {
				t.Errorf("%s:%d says %q; write: %s", path, i+1, found, p.instead)
			}
		}
	}
}

// textsOf returns how to find the prose in a line of a file, nil if it has none.
func textsOf(path string) func(string) string {
	name := filepath.ToSlash(path)
	switch filepath.Ext(name) {
	case ".md", ".yaml", ".tf":
		return strings.TrimSpace
	case ".json":
		if strings.HasSuffix(name, "openapi/openapi.json") || strings.Contains(name, "deploy/grafana/") {
			return strings.TrimSpace
		}
	case ".go", ".ts", ".tsx", ".py", ".sh", ".rs", ".java":
		if testers.MatchString(name) {
			return comments
		}
		quotes := map[string]string{".py": `"""`, ".go": "`", ".ts": "`", ".tsx": "`"}
		return printed(quotes[filepath.Ext(name)])
	}
	return nil
}

// printed returns what finds the comments and literals in the lines of a file. quote, if there is
// one, begins and ends a literal of several lines.
func printed(quote string) func(string) string {
	within := false
	return func(line string) string {
		was := within
		if quote != "" && strings.Count(line, quote)%2 == 1 {
			within = !within
		}
		if was || within {
			return line
		}
		return strings.Join(append(literal.FindAllString(line, -1), comments(line)), " ")
	}
}

// comments returns the comment of a line.
func comments(line string) string {
	if found := comment.FindStringSubmatch(line); found != nil {
		return found[1] + found[2]
	}
	return ""
}
