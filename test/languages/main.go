// Command languages checks the client of each language, and prints which vectors each has passed:
//
//	go run ./test/languages [go python …]
//
// It runs clients/LANGUAGE/check, which writes a line for each vector into the file that
// VECTORS_REPORT names. It fails if a check fails, or a vector has not passed in a language.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

var all = []string{"go", "python", "typescript", "java", "rust"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "languages:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, languages []string) (err error) {
	if len(languages) == 0 {
		languages = all
	}
	vectors, err := readVectors(filepath.Join("clients", "vectors"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fencepost-languages-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t := table{vectors: vectors}
	var failed []error
	for _, language := range languages {
		report := filepath.Join(dir, language)
		fmt.Printf("\n== the client of %s\n", language)
		begun := time.Now()
		if err := runCheck(ctx, language, report); err != nil {
			failed = append(failed, err)
		}
		outcomes, err := readReport(report)
		if err != nil {
			failed = append(failed, err)
		}
		t.add(language, outcomes, time.Since(begun))
	}
	fmt.Printf("\n== vectors\n")
	failed = append(failed, t.print(os.Stdout))
	return errors.Join(append(failed, t.faults()...)...)
}

func check(language string) string { return filepath.Join("clients", language, "check") }

func runCheck(ctx context.Context, language, report string) error {
	cmd := exec.CommandContext(ctx, check(language))
	cmd.Env = append(os.Environ(), "VECTORS_REPORT="+report)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", check(language), err)
	}
	return nil
}
