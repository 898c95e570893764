package row_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bench/row"
	"github.com/fencepost/fencepost/test/bench/side"
)

// TestMain lets the test binary stand in for the benchmark when a row starts
// its server of empty answers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve-empty" {
		if err := side.ServeEmpty(os.Stdout, os.Stdin); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func ids(t *testing.T, selection string) []string {
	t.Helper()
	rows, err := row.Select(selection)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range rows {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestSelect(t *testing.T) {
	all := []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "sets", "webhooks", "streams", "async", "batch", "dashboard", "hostile", "order"}
	if diff := cmp.Diff(all, ids(t, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"S5", "peers", "S1"}, ids(t, "S5, peers,s1")); diff != "" {
		t.Error(diff)
	}
	if _, err := row.Select("S1,S99"); err == nil || !strings.Contains(err.Error(), "S99") {
		t.Errorf("unknown row: %v", err)
	}
}

// A run with real processes and real requests, but without the API server.
func TestRunTheCeiling(t *testing.T) {
	rows, err := row.Select("ceiling")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ended := filepath.Join(t.TempDir(), "ended")
	config := row.Config{
		Dir: t.TempDir(), Empty: []string{"sh", "-c", `"$0" serve-empty; echo ended >>"$1"`, self, ended},
		Duration: 200 * time.Millisecond, Warmup: 50 * time.Millisecond, Rounds: 2, Progress: io.Discard,
	}
	outcomes, err := row.Run(t.Context(), config, rows)
	if err != nil || len(outcomes) != 2 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	for _, o := range outcomes {
		if !strings.HasSuffix(o.Theirs, "/s") || o.Theirs == "0/s" || o.Met != row.NoBar {
			t.Errorf("%+v", o)
		}
	}
	if left, err := os.ReadDir(config.Dir); err != nil || len(left) != 0 {
		t.Errorf("the row left %v, %v", left, err)
	}
	if lines, err := os.ReadFile(ended); err != nil || string(lines) != "ended\nended\n" {
		t.Errorf("servers that ended when the row did: %q, %v; want two", lines, err)
	}
}

func TestRunReportsAFailedRow(t *testing.T) {
	rows, err := row.Select("ceiling")
	if err != nil {
		t.Fatal(err)
	}
	config := row.Config{Dir: t.TempDir(), Empty: []string{"/nonexistent"}, Rounds: 1, Progress: io.Discard}
	outcomes, err := row.Run(t.Context(), config, rows)
	if err == nil || !strings.Contains(err.Error(), "ceiling") || len(outcomes) != 0 {
		t.Errorf("outcomes %v, error %v", outcomes, err)
	}
}

func TestInspectMeasuresAFlush(t *testing.T) {
	dir := t.TempDir()
	m, err := row.Inspect(dir)
	if err != nil || m.Flush <= 0 || m.Cores == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

var (
	machine  = row.Machine{CPU: "Z80", Cores: 2, Kernel: "6.1", Go: "go1.26", Flush: 150 * time.Microsecond, Date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	outcomes = []row.Outcome{
		{
			ID: "S1", What: "fast", Ours: "11 200/s", Theirs: "800/s", Ratio: "14.00× (13.00–15.00)", Bar: "≥ 14×", Met: row.Reached,
			OurP50: "1.00 ms", OurP99: "2.00 ms", TheirP50: "3.00 ms", TheirP99: "4.00 ms",
		},
		{ID: "S8", What: "small", Ours: "25.0 KiB", Bar: "≤ 24 KiB", Met: row.Missed, Notes: []string{"A note."}},
	}
)

const table = `2026-01-02, 2 × Z80, kernel 6.1, go1.26; appending 4 KiB and flushing it takes 150µs.

| row | what | Fencepost | peer | ratio | bar | met | p50 | p99 | peer p50 | peer p99 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| S1 | fast | 11 200/s | 800/s | 14.00× (13.00–15.00) | ≥ 14× | yes | 1.00 ms | 2.00 ms | 3.00 ms | 4.00 ms |
| S8 | small | 25.0 KiB | – | – | ≤ 24 KiB | no | – | – | – | – |

- S8: A note.
`

func TestMarkdown(t *testing.T) {
	if diff := cmp.Diff(table, row.Markdown(machine, outcomes)); diff != "" {
		t.Error(diff)
	}
}

func TestPrint(t *testing.T) {
	var s strings.Builder
	if err := row.Print(&s, machine, outcomes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"S1   fast   11 200/s", "S8: A note.", "2 × Z80"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %q in\n%s", want, &s)
		}
	}
}

func TestWriteMarkdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	for _, tt := range []struct{ before, after string }{
		{"", "new\n"},
		{"unmarked", "new\n"},
		{"# Top\n" + row.BeginMark + "\nold\n" + row.EndMark + "\nbottom\n", "# Top\n" + row.BeginMark + "\nnew\n" + row.EndMark + "\nbottom\n"},
	} {
		if tt.before != "" {
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := row.WriteMarkdown(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if diff := cmp.Diff(tt.after, string(got)); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestStore(t *testing.T) {
	var s row.Store
	if s.String() != "etcd" {
		t.Errorf("the store is %s if nothing is said", &s)
	}
	if err := s.Set("zookeeper"); err != nil || s.String() != "ZooKeeper" {
		t.Errorf("%s, %v", &s, err)
	}
	if err := s.Set("etcd"); err != nil || s.String() != "etcd" {
		t.Errorf("%s, %v", &s, err)
	}
	if err := s.Set("redis"); err == nil {
		t.Error("a store that there is not")
	}
}
