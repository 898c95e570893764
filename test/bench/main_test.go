package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// S4 has our server and etcd's gateway, S5 checks the order of a queue, S10 has an open load.
func TestRowsRunAgainstRealServers(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	args := []string{
		"-rows", "S4,S5,S10", "-rounds", "1", "-duration", "300ms", "-warmup", "100ms", "-dir", dir,
	}
	if err := run(t.Context(), args, &table, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| S4 | ", "| S5 | ", "| S10 | "} {
		if !strings.Contains(table.String(), row) {
			t.Errorf("no row %q in\n%s", row, &table)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissingPeerIsAnErrorThatSaysHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var table strings.Builder
	err := run(t.Context(), []string{"-rows", "Redis", "-dir", t.TempDir()}, &table, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "install the package redis-server") {
		t.Errorf("%v\n%s", err, &table)
	}
}

func TestRowsMustExist(t *testing.T) {
	err := run(t.Context(), []string{"-rows", "S4,S99"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "S99") {
		t.Error(err)
	}
}
