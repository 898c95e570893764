package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// left out of the copies: what the tests do not read.
var leftOut = []string{".git", "bin", "data", "node_modules"}

// copies makes so many copies of the tree below temp, as it is now: what is edited
// meanwhile changes nothing.
func copies(root, temp string, n int) ([]string, error) {
	var trees []string
	for i := range n {
		tree := filepath.Join(temp, fmt.Sprint(i))
		if err := copyTree(root, tree); err != nil {
			return nil, fmt.Errorf("copy the tree: %w", err)
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && slices.Contains(leftOut, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// plant puts the bug into the tree and returns a func that takes it out again.
func (b Bug) plant(tree string) (restore func() error, err error) {
	file := filepath.Join(tree, filepath.FromSlash(b.File))
	sound, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	bad := strings.Replace(string(sound), b.Anchor, b.Becomes, 1)
	return func() error { return os.WriteFile(file, sound, 0o644) }, os.WriteFile(
		file, []byte(bad), 0o644,
	)
}
