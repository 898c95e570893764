package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// tester tests one system after the other.
type tester struct {
	options
	procs   *processes
	out     io.Writer
	command string
	mu      sync.Mutex
}

// report is what a test found about one system.
type report struct {
	System        string            `json:"system"`
	Title         string            `json:"title"`
	Version       string            `json:"version"`
	ServerVersion string            `json:"server_version,omitempty"`
	Claims        map[string]string `json:"claims"`
	Settings      []setting         `json:"settings"`
	Notes         string            `json:"notes,omitempty"`
	Date          string            `json:"date"`
	Command       string            `json:"command"`
	Problem       string            `json:"problem,omitempty"` // why there are no rows
	Rows          []result          `json:"rows"`
}

// test runs the rows for one system.
func (t *tester) test(s *system) report {
	r := report{
		System: s.name, Title: s.Title, Claims: map[string]string{}, Settings: s.Settings, Notes: s.Notes,
		Date: time.Now().UTC().Format(time.DateOnly), Command: t.command,
	}
	for claim := range defaultClaims() {
		r.Claims[claim] = s.claim(claim)
	}
	fmt.Fprintf(t.out, "\n== %s\n", s.Title)
	var err error
	if r.Version, r.ServerVersion, err = s.prepare(t.home); err != nil {
		return t.problem(r, err)
	}
	fmt.Fprintf(t.out, "   %s\n", strings.Trim(r.Version+"; "+r.ServerVersion, "; "))
	for range max(1, t.times) {
		results, err := t.once(s)
		if err != nil {
			return t.problem(r, err)
		}
		r.Rows = merge(r.Rows, results)
	}
	return r
}

func (t *tester) problem(r report, err error) report {
	r.Problem = err.Error()
	fmt.Fprintf(t.out, "   not tested: %s\n", r.Problem)
	return r
}

// once starts the system's server, and runs each row once.
func (t *tester) once(s *system) ([]result, error) {
	r := &run{
		sys: s, procs: t.procs, address: s.address, prefix: fmt.Sprintf("ft-%06x-", rand.IntN(1<<24)),
		histories: map[string]*history{},
	}
	var err error
	if r.folder, err = os.MkdirTemp("", "fencetest-"); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(r.folder) }()    // a temporary folder
	if err = os.Chmod(r.folder, 0o755); err != nil { // a server may drop to another user
		return nil, err
	}
	if r.log, err = t.workersLog(s, r.folder); err != nil {
		return nil, err
	}
	defer r.log.Close()
	if folder := s.serverFolder(t.home); folder != "" && s.address == "" {
		if r.server, err = startServer(t.procs, folder, filepath.Join(r.folder, "data")); err != nil {
			return nil, err
		}
		defer func() { r.server.kill() }() // whichever process it is by then
		r.address = r.server.address()
	}
	defer r.stopIdle()
	return t.phases(s, r), nil
}

func (t *tester) workersLog(s *system, folder string) (*os.File, error) {
	if t.histories != "" {
		folder = filepath.Join(t.histories, s.name)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(folder, "workers.log"))
}

// phases runs the rows: those of one phase at once, and fences, which looks at all, last.
func (t *tester) phases(s *system, r *run) []result {
	all := rows()
	results := make([]result, len(all))
	for phase := 1; phase <= 7; phase++ {
		var now sync.WaitGroup
		for i, w := range all {
			if w.phase == phase && (t.rows == "" || slices.Contains(list(t.rows), w.id)) {
				now.Go(func() { results[i] = t.one(s, r, w) })
			}
		}
		now.Wait()
	}
	return slices.DeleteFunc(results, func(w result) bool { return w.Row == "" })
}

func (t *tester) one(s *system, r *run, w row) result {
	res, h := r.play(w)
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "   %-13s %-11s %s (%.0f s)\n", res.Row, res.Verdict, res.Facts, res.Seconds)
	if t.histories != "" && len(h.all()) > 0 {
		base := filepath.Join(t.histories, s.name, w.id)
		title := s.Title + ", " + w.id + ": " + string(res.Verdict)
		err := errors.Join(os.WriteFile(base+".txt", []byte(title+"\n"+res.Facts+"\n\n"+h.text()), 0o600),
			os.WriteFile(base+".svg", []byte(svg(title, res.Facts, h.all())), 0o600))
		if err != nil {
			fmt.Fprintf(t.out, "   the history is not written: %v\n", err)
		}
	}
	return res
}

// merge counts the runs of each row, and keeps the facts of a run that failed.
func merge(before, now []result) []result {
	for i := range now {
		now[i].Runs = 1
		if now[i].Verdict == bad {
			now[i].Failed = 1
		}
		if len(before) == 0 {
			continue
		}
		runs, failed := before[i].Runs+1, before[i].Failed+now[i].Failed
		if before[i].Verdict == bad {
			now[i] = before[i]
		}
		now[i].Runs, now[i].Failed = runs, failed
	}
	return now
}

// save writes the report into the file of results, in the place of an older one of the system.
func (t *tester) save(r report) error {
	if t.json == "" {
		return nil
	}
	reports, err := load(t.json)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	reports = slices.DeleteFunc(reports, func(old report) bool { return old.System == r.System })
	text, err := json.MarshalIndent(append(reports, r), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(t.json, append(text, '\n'), 0o600)
}

func load(file string) (reports []report, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return reports, nil
}

func (r *run) stopIdle() {
	for _, w := range r.idle {
		w.stop()
	}
}
