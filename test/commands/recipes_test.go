package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRecipesRun: each fencepost run of a recipe gets its lock and runs a command.
func TestRecipesRun(t *testing.T) {
	t.Parallel()
	recipes, err := filepath.Glob("../../deploy/recipes/*")
	if err != nil {
		t.Fatal(err)
	}
	u, ran := newUser(t), 0
	for _, path := range recipes {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".timer") {
			continue
		}
		call := regexp.MustCompile(`fencepost,? run,? ([^\n]*?) --[ ,\n]`).FindSubmatch(text)
		if call == nil {
			t.Errorf("%s has no fencepost run", path)
			continue
		}
		args := strings.Fields(strings.NewReplacer(",", "", `"`, "").Replace(string(call[1])))
		out := u.command(append(append([]string{"run"}, args...), "--", "echo", "ran")...).expect(0)
		if out != "ran\n" {
			t.Errorf("%s: %q prints %q", path, args, out)
		}
		ran++
	}
	if ran != 6 {
		t.Errorf("%d recipes ran", ran)
	}
}
