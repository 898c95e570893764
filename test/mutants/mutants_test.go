package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// maxBugs bounds the table: each row breaks with the code that it names.
const maxBugs = 120

// explored is the number of bugs for the explorer, some of them by the names that they have in the
// table.
const explored = 21

// TestBugsApply checks that each bug still applies and that its test exists.
func TestBugsApply(t *testing.T) {
	apply(t, table(), maxBugs)
	apply(t, exploreBugs(), explored)
	if n := len(exploreBugs()); n != explored {
		t.Errorf("there are %d bugs for the explorer, not %d", n, explored)
	}
}

func apply(t *testing.T, bugs []Bug, most int) {
	t.Helper()
	names := map[string]bool{}
	for _, b := range bugs {
		if err := b.check(root); err != nil {
			t.Error(err)
		}
		if b.Breaks == "" || names[b.Name] {
			t.Errorf("%q has no rule that it breaks, or another bug's name", b.Name)
		}
		names[b.Name] = true
		switch b.Needs {
		case "", "etcd", "zookeeper":
		default:
			t.Errorf("%s needs %q", b.Name, b.Needs)
		}
	}
	if len(names) > most {
		t.Errorf(
			"there are %d bugs, more than %d: remove one that another test catches", len(names), most,
		)
	}
}

// newTree is a module that the go command can test, with one test.
func newTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	write(t, filepath.Join(tree, "go.mod"), "module example\n\ngo 1.26\n")
	write(t, filepath.Join(tree, "code.go"),
		"package example\n\nfunc one() int {\n\ta := 1\n\tb := 1\n\treturn a * b\n}\n")
	write(t, filepath.Join(tree, "code_test.go"), `package example

import "testing"

func TestA(t *testing.T) {
	for one() == 3 {
	}
	t.Run("case", func(t *testing.T) {
		if one() == 2 {
			t.Error("two")
		}
	})
}

func TestB(*testing.T) {}
`)
	return tree
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOutcomes plants bugs for real: one that a test catches, one that none does,
// one that does not compile, and leaves the code as it was.
func TestOutcomes(t *testing.T) {
	tree := newTree(t)
	caught := Bug{
		Name: "x", File: "code.go", Anchor: "a := 1", Becomes: "a := 2", In: ".", Run: "TestA",
	}
	survives, broken := caught, caught
	survives.Becomes = "a := 5"
	broken.Becomes = "a := none"
	bugs := []Bug{caught, survives, broken}
	if err := sound(t.Context(), []string{tree}, bugs); err != nil {
		t.Fatal(err)
	}
	outcomes := tryAll(t.Context(), []string{tree}, bugs)
	if o := outcomes[0]; o.caught != "TestA/case" || o.err != nil {
		t.Errorf("one that is caught: %+v", o)
	}
	if o := outcomes[1]; o.caught != "" || o.err != nil {
		t.Errorf("one that survives: %+v", o)
	}
	if o := outcomes[2]; o.caught != "" || o.err == nil {
		t.Errorf("one that does not compile: %+v", o)
	}
	if err := verdict(outcomes); err == nil || !strings.Contains(err.Error(), "2 of 3") {
		t.Errorf("verdict() = %v", err)
	}
	if err := verdict(outcomes[:1]); err != nil {
		t.Errorf("verdict() = %v", err)
	}
	if err := sound(t.Context(), []string{tree}, bugs); err != nil {
		t.Errorf("the tree is not as it was: %v", err)
	}
	for _, part := range []string{"`TestA/case`", "**survived . TestA**", "**it does not compile**"} {
		if !strings.Contains(report(outcomes), part) {
			t.Errorf("the report lacks %s:\n%s", part, report(outcomes))
		}
	}
}
