package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	testTimeout = 5 * time.Minute
	hangTimeout = 30 * time.Second // for a test that is expected not to end
	callTimeout = 10 * time.Minute // compilers included
)

// outcome is what became of a seeded bug.
type outcome struct {
	bug    Bug
	caught string // the test that failed; "" if none did
	err    error  // why nothing can be said
	took   time.Duration
	output string
}

// each calls do for every item, in as many goroutines as there are trees, each of
// which has one tree for itself. The order is the same each time and not that of the items:
// those that compute and those that wait for servers, which stand together in the table, are
// done beside each other.
func each[T any](trees []string, items []T, do func(tree string, i int, item T)) {
	next := make(chan int)
	var all sync.WaitGroup
	for _, tree := range trees {
		all.Go(func() {
			for i := range next {
				do(tree, i, items[i])
			}
		})
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(items)) {
		next <- i
	}
	close(next)
	all.Wait()
}

// sound makes sure that without any bug the tests pass: one that fails anyway
// would seem to catch everything.
func sound(ctx context.Context, trees []string, bugs []Bug) error {
	var runs []Bug
	for _, b := range bugs {
		same := func(r Bug) bool { return r.In == b.In && r.Env == b.Env }
		if i := slices.IndexFunc(runs, same); i >= 0 {
			runs[i].Run += "|" + b.Run
		} else {
			runs = append(runs, Bug{In: b.In, Env: b.Env, Run: b.Run})
		}
	}
	failures := make([]error, len(runs))
	each(trees, runs, func(tree string, i int, run Bug) {
		output, err := run.test(ctx, tree, callTimeout)
		if err != nil {
			failures[i] = fmt.Errorf("without any bug: %s: %w\n%s", run.In, err, tail(output))
		}
		progress(err == nil, "%s passes without any bug", run.In)
	})
	return errors.Join(failures...)
}

func tryAll(ctx context.Context, trees []string, bugs []Bug) []outcome {
	outcomes := make([]outcome, len(bugs))
	each(trees, bugs, func(tree string, i int, b Bug) {
		if ctx.Err() != nil {
			return
		}
		outcomes[i] = b.try(ctx, tree)
		progress(outcomes[i].caught != "", "%s: %s", b.Name, outcomes[i])
	})
	return outcomes
}

func progress(good bool, format string, args ...any) {
	mark := "ok  "
	if !good {
		mark = "FAIL"
	}
	fmt.Fprintf(os.Stderr, mark+" "+format+"\n", args...)
}

// try seeds the bug into the tree, runs its test and takes the bug out again.
func (b Bug) try(ctx context.Context, tree string) outcome {
	began := time.Now()
	restore, err := b.plant(tree)
	if err != nil {
		return outcome{bug: b, err: err}
	}
	timeout := testTimeout
	if b.Hangs {
		timeout = hangTimeout
	}
	output, err := b.test(ctx, tree, timeout)
	o := outcome{bug: b, took: time.Since(began), output: output}
	o.caught, o.err = b.judge(output, err)
	if err := restore(); err != nil {
		o.err = errors.Join(o.err, err)
	}
	return o
}

func (b Bug) test(
	ctx context.Context,
	tree string,
	timeout time.Duration,
) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-failfast",
		"-timeout", timeout.String(), "-run", b.Run, b.In)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "PWD="+tree)
	if b.Env != "" {
		cmd.Env = append(cmd.Env, b.Env)
	}
	// go test ends its tests then
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	return both.String(), err
}

var (
	failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	inTest = regexp.MustCompile(`_test\.(Test\w+)`) // a frame of a panic's trace
)

// judge reads from a test's output whether it caught the bug.
func (b Bug) judge(output string, err error) (caught string, _ error) {
	var exit *exec.ExitError
	switch hung := strings.Contains(output, "panic: test timed out"); {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return "", errors.New("it does not compile")
	case hung && !b.Hangs:
		return "", errors.New("the test did not end, and the table does not say that it would")
	case hung:
		return strings.Trim(b.Run, "^$") + " (does not end)", nil
	}
	return firstFailure(output), nil
}

// firstFailure names the first test that failed, down to the case.
func firstFailure(output string) string {
	name := ""
	for _, found := range failed.FindAllStringSubmatch(output, -1) {
		if name == "" || strings.HasPrefix(found[1], name+"/") {
			name = found[1]
		}
	}
	if panicked := inTest.FindStringSubmatch(output); name == "" && panicked != nil {
		return panicked[1] + " (panic)"
	}
	return cmp.Or(name, "the checks after the tests")
}

func tail(output string) string {
	const enough = 4 << 10
	return output[max(0, len(output)-enough):]
}
