package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// file is one of clients/vectors.
type file struct {
	name    string
	vectors []string
}

func readVectors(dir string) ([]file, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if name == "bodies" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var vectors []struct{ Name string }
		if err := json.Unmarshal(text, &vectors); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f := file{name: name}
		for _, v := range vectors {
			f.vectors = append(f.vectors, v.Name)
		}
		files = append(files, f)
	}
	return files, nil
}

// readReport returns what a check reported of each vector.
func readReport(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no report of the vectors: %w", err)
	}
	outcomes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, outcome, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if before, twice := outcomes[name]; !twice || before == "ok" {
			outcomes[name] = outcome
		}
	}
	return outcomes, nil
}

// table has a row for each file of vectors, and a column for each language.
type table struct {
	vectors []file
	columns []column
}

type column struct {
	language string
	outcomes map[string]string
	took     time.Duration
}

func (t *table) add(language string, outcomes map[string]string, took time.Duration) {
	t.columns = append(t.columns, column{language, outcomes, took})
}

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	t.row(w, "", func(c column) string { return c.language })
	for _, f := range t.vectors {
		t.row(w, f.name, func(c column) string {
			passed := 0
			for _, name := range f.vectors {
				if c.outcomes[name] == "ok" {
					passed++
				}
			}
			return fmt.Sprintf("%d/%d", passed, len(f.vectors))
		})
	}
	t.row(w, "seconds", func(c column) string { return fmt.Sprintf("%.0f", c.took.Seconds()) })
	return w.Flush()
}

func (t *table) row(w io.Writer, title string, cell func(column) string) {
	fmt.Fprint(w, title)
	for _, c := range t.columns {
		fmt.Fprint(w, "\t", cell(c))
	}
	fmt.Fprintln(w)
}

// faults names each vector that did not pass, or that a report does not have.
func (t *table) faults() (faults []error) {
	for _, c := range t.columns {
		if c.outcomes == nil { // which is a fault of its own
			continue
		}
		for _, f := range t.vectors {
			for _, name := range f.vectors {
				switch outcome := c.outcomes[name]; outcome {
				case "ok":
				case "":
					faults = append(faults, fmt.Errorf("%s: %s did not run", c.language, name))
				default:
					faults = append(faults, fmt.Errorf("%s: %s %s", c.language, name, outcome))
				}
			}
		}
	}
	return faults
}
