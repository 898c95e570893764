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

// tester tests systems.
type tester struct {
	options
	procs  *processes
	folder string // of all files, temporary
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

// test runs the rows for one system, and says on out what they find.
func (t *tester) test(s *system, out io.Writer) report {
	r := report{
		System: s.name, Title: s.Title, Claims: s.Claims, Settings: s.Settings, Notes: s.Notes,
		Date: time.Now().UTC().Format(time.DateOnly), Command: "make fencetest SYSTEM=" + s.name,
	}
	fmt.Fprintf(out, "\n== %s\n", s.Title)
	server := s.server(t.home)
	var err error
	if r.Version, r.ServerVersion, err = s.prepare(server); err == nil {
		fmt.Fprintf(out, "   %s %s\n", r.Version, r.ServerVersion)
		r.Rows, err = t.run(s, server, out)
	}
	if err != nil {
		r.Problem = err.Error()
		fmt.Fprintf(out, "   not tested: %s\n", r.Problem)
	}
	return r
}

// run starts the system's server and runs each row.
func (t *tester) run(s *system, server *server, out io.Writer) (_ []result, err error) {
	r := &run{
		sys: s, procs: t.procs, server: server, address: s.address, histories: map[string]*history{},
		prefix: fmt.Sprintf("ft-%06x-", rand.IntN(1<<24)), folder: filepath.Join(t.folder, s.name),
	}
	logs := r.folder
	if t.histories != "" {
		logs = filepath.Join(t.histories, s.name)
	}
	if err = errors.Join(os.MkdirAll(r.folder, 0o755), os.MkdirAll(logs, 0o755)); err != nil {
		return nil, err
	}
	if r.log, err = os.Create(filepath.Join(logs, "workers.log")); err != nil {
		return nil, err
	}
	defer r.log.Close()
	if server != nil {
		server.procs, server.data = t.procs, filepath.Join(r.folder, "data")
		if err = server.start("start"); err != nil {
			return nil, err
		}
		defer func() { server.kill() }() // its process is another one after a restart
		r.address = server.address()
	}
	defer func() {
		for _, c := range r.idle {
			c.end()
		}
	}()
	first := &bench{run: r, ttl: ttl, history: &history{}}
	_, err = first.connect("first")
	first.end()
	if err != nil {
		said, _ := os.ReadFile(r.log.Name()) // without it the message is shorter
		return nil, fmt.Errorf("%w\n%s", err, last(string(said)))
	}
	return t.phases(r, out), nil
}

// phases runs the rows, those of one phase at once.
func (t *tester) phases(r *run, out io.Writer) []result {
	all := rows()
	results := make([]result, len(all))
	var printing sync.Mutex
	for phase := range lastPhase + 1 {
		var now sync.WaitGroup
		for i, w := range all {
			if w.phase != phase || t.rows != "" && !slices.Contains(list(t.rows), w.id) {
				continue
			}
			now.Go(func() {
				res, h := r.play(w)
				res.Does, results[i] = w.does, res
				printing.Lock()
				defer printing.Unlock()
				fmt.Fprintf(out, "   %-13s %-11s %s (%.0f s)\n", res.Row, res.Verdict, res.Facts, res.Seconds)
				if err := t.keep(r.sys, res, h); err != nil {
					fmt.Fprintf(out, "   the history is not written: %v\n", err)
				}
			})
		}
		now.Wait()
	}
	return slices.DeleteFunc(results, func(w result) bool { return w.Row == "" })
}

// keep writes the history of a row as text and as a picture.
func (t *tester) keep(s *system, res result, h *history) error {
	if t.histories == "" || len(h.all()) == 0 {
		return nil
	}
	base := filepath.Join(t.histories, s.name, res.Row)
	title := s.Title + ", " + res.Row + ": " + string(res.Verdict)
	text := strings.Join([]string{title, res.Does, res.Facts, "", h.text()}, "\n")
	return errors.Join(os.WriteFile(base+".txt", []byte(text), 0o600),
		os.WriteFile(base+".svg", []byte(svg(title, res.Facts, h.all())), 0o600))
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
	reports = append(reports, r)
	slices.SortFunc(reports, func(a, b report) int { return strings.Compare(a.System, b.System) })
	text, err := json.MarshalIndent(reports, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(t.json, append(text, '\n'), 0o600)
}

func load(file string) (reports []report, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &reports)
	}
	return reports, err
}
