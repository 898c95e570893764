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

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	remote  = regexp.MustCompile(`^([a-z]+:|/)`)
	label   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinksResolve: each relative link of a document leads to a file that exists, and to a heading
// that it has.
func TestLinksResolve(t *testing.T) {
	root := filepath.Join("..", "..")
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(unread(), d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		read++
		for _, link := range linked.FindAllStringSubmatch(prose(t, path), -1) {
			if !remote.MatchString(link[1]) {
				follow(t, path, link[1])
			}
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Errorf("%d documents are read, %v", read, err)
	}
}

func follow(t *testing.T, from, link string) {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), filepath.FromSlash(path))
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("%s: %s leads nowhere", from, link)
		return
	}
	if anchor != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchors(t, target), anchor) {
		t.Errorf("%s: %s has no such heading", from, link)
	}
}

// prose returns a document without its fenced blocks.
func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// anchors returns the headings of a document as GitHub names them. A heading that is there twice
// counts once.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	var names []string
	for _, match := range heading.FindAllStringSubmatch(prose(t, path), -1) {
		text := label.ReplaceAllString(match[1], "$1")
		text = dropped.ReplaceAllString(strings.ToLower(text), "")
		names = append(names, strings.ReplaceAll(text, " ", "-"))
	}
	return names
}
