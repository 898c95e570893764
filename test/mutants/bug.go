package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bug is one bug that can be seeded, and the test that must fail because of it.
type Bug struct {
	Name   string // unique: package, dash, what is wrong
	Breaks string // the promise that it breaks, for the table

	File    string // slash-separated, from the root of the module
	Anchor  string // occurs exactly once in File
	Becomes string // stands in its place

	In    string // the package whose test must fail, as ./service
	Run   string // the pattern for -run; narrow, so that it is fast
	Needs string // what the test starts besides itself: "", etcd or zookeeper
	Env   string // NAME=value for the test, if it needs one
	Hangs bool   // the test does not end, because what it waits for never comes
}

// table returns all bugs. Each file bugs_<subject>.go has one list.
func table() []Bug {
	return slices.Concat(
		queueBugs(), waitBugs(), asyncBugs(), keyBugs(), storeBugs(), engineBugs(), trustBugs(),
		etcdBugs(), zookeeperBugs(), authBugs(), webhookBugs(), eventBugs(),
	)
}

// check returns what keeps the bug from being seeded and tested in the tree.
func (b Bug) check(root string) error {
	code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File)))
	if err != nil {
		return fmt.Errorf("%s no longer applies: %w", b.Name, err)
	}
	if n := strings.Count(string(code), b.Anchor); n != 1 || b.Anchor == "" {
		return fmt.Errorf("%s no longer applies: its anchor is %d times in %s", b.Name, n, b.File)
	}
	if b.Anchor == b.Becomes {
		return fmt.Errorf("%s changes nothing", b.Name)
	}
	return b.checkTest(root)
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// checkTest returns an error if a test that the pattern names is not there.
func (b Bug) checkTest(root string) error {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(b.In), "*_test.go"))
	if err != nil {
		return err
	}
	var tests []string
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range testFunc.FindAllSubmatch(code, -1) {
			tests = append(tests, string(bytes.Clone(found[1])))
		}
	}
	for alternative := range strings.SplitSeq(b.Run, "|") {
		first, _, _ := strings.Cut(alternative, "/")
		pattern, err := regexp.Compile(first)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		if first == "" || !slices.ContainsFunc(tests, pattern.MatchString) {
			return fmt.Errorf("%s: there is no test %s in %s", b.Name, first, b.In)
		}
	}
	return nil
}
