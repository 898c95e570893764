package architecture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsLeftOfMerges: no document has both sides of a conflict, which nothing that builds
// notices.
func TestNothingIsLeftOfMerges(t *testing.T) {
	read := 0
	err := filepath.WalkDir(
		filepath.Join("..", ".."),
		func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains(unread(), d.Name()):
				return filepath.SkipDir
			case filepath.Ext(path) != ".md":
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
					t.Errorf("%s has the line %q", path, line)
				}
			}
			return nil
		},
	)
	if err != nil || read < 20 {
		t.Errorf("%d documents are read, %v", read, err)
	}
}
