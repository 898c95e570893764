package simulation

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store/memory"
)

// TestExplorerFinds: a bug that needs two deviations is found with two, not with one, and its story
// names both.
func TestExplorerFinds(t *testing.T) {
	s := *scenarioOf("hand-over")
	s.doctor = func(x *explorer) {
		lost := func(op memory.Operation) bool {
			return slices.Contains(x.made, noReply+" to a "+string(op))
		}
		if lost(memory.Put) && lost(memory.Remove) {
			x.w.problems = append(x.w.problems, "doctored")
		}
	}
	e := &exploration{t: t, scenario: &s, most: 1, began: time.Now()}
	if found := e.explore(); found != nil {
		t.Fatalf("with one deviation it found %v", found)
	}
	e.most = 2
	found := e.explore()
	if found == nil {
		t.Fatal("it found nothing")
	}
	if n := strings.Count(found.story, "→"); n != 2 || !strings.Contains(found.story, "no answer") {
		t.Errorf("the story:\n%s", found.story)
	}
}

// TestScenariosAreListed: the page about the explorer names each scenario.
func TestScenariosAreListed(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/explore.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios() {
		if !strings.Contains(string(page), s.name) {
			t.Errorf("the page does not list %s", s.name)
		}
	}
}
