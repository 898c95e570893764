package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSoundLockPassesAllRows: what a row finds is the lock's, not the harness's.
func TestSoundLockPassesAllRows(t *testing.T) {
	t.Parallel()
	claims := "exclusion,frees,survives_restart,order,fence,tells_loss"
	for _, r := range judge(t, doctored(t, ""), claims, "").Rows {
		want := good
		switch r.Row {
		case "clock": // needs a worker that reads the clock through the C library
			want = notRun
		case "failover": // its replica has nothing of the primary
			want = notClaimed
		}
		if r.Verdict != want {
			t.Errorf("%s: %s, not %s: %s", r.Row, r.Verdict, want, r.Facts)
		}
	}
}

// TestDoctoredLocksAreFound: the row that is meant for a fault finds it.
func TestDoctoredLocksAreFound(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ fault, claims, row, others, facts string }{
		{"no-exclusion", "exclusion", "together", "", "times two holders at once"},
		{"fence-repeats", "fence", "fences", "together", "times one that another had"},
		{"fence-falls", "fence", "fences", "together", "times a lower one"},
		{"fence-falls", "fence", "paused", "", "no fence can reject it"},
		{"deaf", "tells_loss", "paused", "", "never learns"},
		{"releases-any", "exclusion", "late-release", "", "freed the lock of the next holder"},
		{"releases-any", "exclusion", "paused", "", "its release freed the lock of the other"},
		{"unfair", "order", "order", "", "15 of 15 pairs reversed"},
		{"leaks-waiters", "frees", "dead-waiter", "", "not granted within"},
		{"immortal", "frees", "dead-holder", "", "not granted within"},
		{"immortal", "frees", "answer-lost", "", "or more"},
		{"believes", "exclusion", "answer-lost", "", "another is granted it too"},
		{"forgets", "survives_restart", "server-killed", "", "another is granted the lock"},
		{"", "survives_failover", "failover", "", "another is granted the lock"},
	} {
		t.Run(f.fault+"/"+f.row, func(t *testing.T) {
			t.Parallel()
			rows := judge(t, doctored(t, f.fault), f.claims, strings.Trim(f.row+","+f.others, ",")).Rows
			for _, r := range rows {
				if r.Row == f.row && (r.Verdict != bad || !strings.Contains(r.Facts, f.facts)) {
					t.Errorf("%s: %s: %s", r.Row, r.Verdict, r.Facts)
				}
			}
		})
	}
}

// TestUnclaimedIsNotHeldAgainstALock: the same facts, without the claim.
func TestUnclaimedIsNotHeldAgainstALock(t *testing.T) {
	t.Parallel()
	rows := judge(t, doctored(t, "unfair"), "", "order").Rows
	if rows[0].Verdict != notClaimed || !strings.Contains(rows[0].Facts, "reversed") {
		t.Errorf("%+v", rows[0])
	}
}

// TestLockThatNobodyIsGrantedFails: it would pass each row that does not run.
func TestLockThatNobodyIsGrantedFails(t *testing.T) {
	t.Parallel()
	o := options{worker: "./mine"}
	if o.code([]report{{Rows: []result{{Row: "together", Verdict: notRun}}}}) == 0 {
		t.Error("the command succeeds")
	}
}

// TestExampleOfThePage: the worker in README.md works as printed, and its lock trusts clocks.
func TestExampleOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```python\n")
	program, _, _ := strings.Cut(rest, "```")
	worker := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(worker, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	want := map[string]verdict{
		"together": good, "dead-holder": good, "paused": notClaimed, "clock": bad,
	}
	for _, r := range judge(t, worker, "tells_loss", "together,dead-holder,paused,clock").Rows {
		if r.Verdict != want[r.Row] {
			t.Errorf("%s: %s, not %s: %s", r.Row, r.Verdict, want[r.Row], r.Facts)
		}
	}
}

// doctored returns the folder of a system whose lock has a fault.
func doctored(t *testing.T, fault string) string {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "doctored")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./doctored")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{
		"server/start":   `exec ` + program + ` serve "$1" "$2" ` + fault,
		"server/replica": `exec ` + program + ` serve "$1" "$2"`,
		"server/promote": `:`,
		"system.json": fmt.Sprintf(`{"title": "doctored %s", "server": "./server", "frees_within_s": 8, "worker": [%q, "work", %q]}`,
			fault, program, fault),
	} {
		if err := os.MkdirAll(filepath.Join(folder, "server"), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "server/") {
			text = "#!/bin/sh\n" + text + "\n"
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// judge runs rows for the system of a folder.
func judge(t *testing.T, folder, claims, rows string) report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.json")
	var out strings.Builder
	args := []string{"-worker", folder, "-claims", claims, "-row", rows, "-json", file}
	code, err := command(args, &out)
	if err != nil {
		t.Fatal(err)
	}
	reports, err := load(file)
	if err != nil || len(reports) != 1 || reports[0].Problem != "" {
		t.Fatalf("exit %d, %v: %s", code, err, out.String())
	}
	t.Log(out.String())
	return reports[0]
}
