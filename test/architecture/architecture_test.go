package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fencepost/fencepost"

// may says which rows a folder, and those below it that have no row of their own,
// may import. A folder that is new gets a row here, so that its place is decided
// and not found out.
func may() map[string][]string {
	return map[string][]string{
		"lock":          {},
		"lock/blocking": {"lock"},
		"lock/deadlock": {"lock", "lock/heap"},
		"lock/heap":     {},
		"lock/locktest": {"lock"},
		"lock/order":    {"lock"},
		"quota":         {"audit", "lock", "store"},
		"audit":         {"lock", "store"},
		"service": {
			"audit", "lock", "lock/blocking", "lock/heap", "quota",
			"service/closures", "service/events", "service/figures",
			"service/lists", "service/replicas", "service/view", "store",
		},
		"service/lists":    {"lock", "service/figures", "service/view"},
		"service/replicas": {"lock", "store"},
		"service/closures": {"audit", "lock", "store"},
		"service/events":   {"lock", "lock/heap", "quota"},
		"service/figures":  {"lock", "lock/heap", "lock/order"},
		"service/view": {
			"lock", "lock/blocking", "lock/deadlock", "lock/heap", "quota", "service/figures", "store",
		},
		"store":           {"lock"},
		"store/engine":    {"lock", "store", "store/batch"},
		"store/batch":     {"lock"},
		"store/memory":    {"lock", "store", "store/batch", "store/engine"},
		"store/etcd":      {"lock", "lock/heap", "store", "store/batch", "store/engine"},
		"store/zookeeper": {"lock", "lock/heap", "store", "store/batch", "store/engine"},
		"store/storetest": {"lock", "store"},
		"auth":            {"lock"},
		"telemetry":       {"quota"},
		"webhook":         {"lock"},
		"openapi":         {"api"},
		"dashboard":       {},
		"api":             {},
		"event":           {"api", "auth", "lock"},
		"handlers": {
			"api", "event", "audit", "lock", "lock/blocking", "lock/order", "quota", "service",
			"service/closures", "service/events", "service/lists", "service/figures", "service/view",
			"auth", "telemetry",
			"webhook", "webhook/outbox", "webhook/subscription", "openapi",
		},
		"client":           {"api"},
		"client/fencehttp": {},
		"client/fencesql":  {"client"},
		"cmd/fencepost":    {"api", "client"},
		"webhook/outbox": {
			"api", "event", "audit", "auth", "lock", "lock/heap", "quota", "service", "service/events",
			"service/replicas", "store", "webhook", "webhook/subscription",
		},
		"webhook/subscription":   {"audit", "auth", "lock", "quota", "store", "webhook"},
		"auth/certtest":          {},
		"auth/signin":            {"auth"},
		"auth/signin/signintest": {},
		"cmd/api": {
			"audit", "lock", "quota", "service", "service/closures",
			"service/events", "service/replicas", "service/view",
			"store", "store/batch", "store/etcd", "store/zookeeper", "auth", "telemetry", "webhook",
			"webhook/outbox", "webhook/subscription", "openapi", "auth/signin", "dashboard", "handlers",
		},
	}
}

// only says which folders may import a library. What belongs to one adapter must
// not leak into what is written once.
func only() map[string][]string {
	return map[string][]string{
		"github.com/gin-gonic":               {"handlers"},
		"github.com/swaggo":                  {"handlers", "openapi"},
		"github.com/getkin/kin-openapi":      {"openapi"},
		"github.com/golang-jwt/jwt":          {"auth"},
		"github.com/MicahParks":              {"auth"},
		"go.etcd.io":                         {"store/etcd"},
		"github.com/go-zookeeper":            {"store/zookeeper"},
		"github.com/prometheus":              {"telemetry"},
		"go.opentelemetry.io/contrib":        {"telemetry"},
		"go.opentelemetry.io/otel/exporters": {"telemetry"},
		"go.opentelemetry.io/otel/sdk":       {"telemetry"},
		"go.opentelemetry.io/otel/metric":    {"telemetry"},
		"testing": {
			"store/storetest",
			"auth/certtest",
			"auth/signin/signintest",
		},
		"github.com/coreos/go-oidc":               {"auth/signin"},
		"golang.org/x/oauth2":                     {"auth/signin", "cmd/fencepost"},
		"github.com/jackc/pgx":                    {"cmd/fencepost/tfstate"},
		"github.com/aws":                          {"cmd/fencepost/tfstate"},
		"github.com/google/go-cmp":                {"store/storetest"},
		"go.uber.org/goleak":                      {"store/storetest"},
		"golang.org/x/time":                       {"audit", "handlers", "service", "quota"},
		"pgregory.net/rapid":                      {},
		"github.com/anishathalye/porcupine":       {},
		"github.com/HdrHistogram/hdrhistogram-go": {},
	}
}

// pkg is what go list says of a package. Imports are those of its code, not of
// its tests.
type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	return listIn(t, ".", args...)
}

// listIn lists packages of the module in a folder.
func listIn(t *testing.T, folder string, args ...string) []pkg {
	t.Helper()
	watchSources(t)
	out := goIn(t, path.Join("..", "..", folder),
		append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// goIn runs the go command in a folder, and returns what it prints.
func goIn(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return string(out)
}

// unread are the folders of what tools fetch and build.
func unread() []string {
	return []string{".git", "bin", "data", "node_modules", "target", ".venv"}
}

// watchSources reads the folders of the module, as that is what the go command
// notes: a cached result of this test is then used only while nothing has changed.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(path.Join("..", ".."), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(unread(), d.Name()) {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// local returns the folder of one of our own packages, without the module.
func local(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// under reports whether p is one of the folders, or below one.
func under(p string, folders []string) bool {
	return slices.ContainsFunc(
		folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") },
	)
}

// ours lists the packages that the rules are about. Programs under test/ may
// import everything: they look from outside.
func ours(t *testing.T) []pkg {
	t.Helper()
	all := list(t, "./...")
	for _, folder := range []string{"api", "client", "cmd/fencepost"} {
		all = append(all, listIn(t, folder, "./...")...)
	}
	all = slices.DeleteFunc(all, func(p pkg) bool {
		folder, _ := local(p.ImportPath)
		return under(folder, []string{"test"})
	})
	if len(all) < 5 {
		t.Fatalf("go list found %d packages; this test would check nothing", len(all))
	}
	return all
}

func TestOwnImports(t *testing.T) {
	for _, p := range ours(t) {
		folder, _ := local(p.ImportPath)
		row, known := rowOf(folder)
		if !known {
			t.Errorf("%s has no row in this test: say what it may import", folder)
			continue
		}
		for _, i := range p.Imports {
			imported, own := local(i)
			to, _ := rowOf(imported)
			if own && to != row && !slices.Contains(may()[row], to) {
				t.Errorf("%s imports %s; it may import %v", folder, imported, may()[row])
			}
		}
	}
}

// rowOf finds the row that is about a folder: its own, or that of the nearest
// folder above it that has one.
func rowOf(folder string) (row string, known bool) {
	for r := range may() {
		if under(folder, []string{r}) && len(r) > len(row) {
			row, known = r, true
		}
	}
	return row, known
}

func TestLibraries(t *testing.T) {
	for _, p := range ours(t) {
		folder, _ := local(p.ImportPath)
		for _, i := range p.Imports {
			for library, folders := range only() {
				if under(i, []string{library}) && !under(folder, folders) {
					t.Errorf("%s imports %s; only %v may", folder, i, folders)
				}
			}
		}
	}
}

// The domain is pure: besides itself the standard library alone, and of that nothing
// that waits, locks, or reaches the world.
func TestDomainIsPure(t *testing.T) {
	impure := []string{
		"os", "io", "net", "sync", "context", "log", "runtime", "syscall", "unsafe", "math/rand",
	}
	for _, p := range list(t, "./lock/...") {
		for _, i := range p.Imports {
			folder, own := local(i)
			domain, _, _ := strings.Cut(i, "/")
			if strings.Contains(domain, ".") && !(own && under(folder, []string{"lock"})) {
				t.Errorf("%s imports %s, which is not of the standard library", p.ImportPath, i)
			}
			if under(i, impure) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

// What only tests need must not end up in the server.
func TestServerHasNoTestCode(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/api") {
		folder, own := local(p.ImportPath)
		if own && under(folder, []string{"test", "store/storetest", "client", "cmd/fencepost"}) ||
			p.ImportPath == "testing" {
			t.Errorf("cmd/api contains %s", p.ImportPath)
		}
	}
}

// What docs/internals/architecture.md tells about imports is what this test checks.
func TestDocumentedImports(t *testing.T) {
	documented := documentedRows(t)
	for row, imports := range documented {
		if want := existing(may()[row]); !slices.Equal(sorted(imports), sorted(want)) {
			t.Errorf("docs/internals/architecture.md lets %s import %v, this test %v", row, imports, want)
		}
	}
	for row := range may() {
		if _, told := documented[row]; !told && !slices.Contains(planned(), row) {
			t.Errorf("docs/internals/architecture.md has no row for %s", row)
		}
	}
}

// documentedRows reads the table of packages: its first column, and the last.
func documentedRows(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string][]string)
	_, table, _ := strings.Cut(string(text), "| package |")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			if len(rows) > 0 {
				break
			}
			continue
		}
		if name := quoted(cells[1]); len(name) == 1 {
			rows[name[0]] = quoted(cells[3])
		}
	}
	return rows
}

// quoted lists what stands between backquotes.
func quoted(cell string) []string {
	var all []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// existing leaves out what is planned.
func existing(rows []string) []string {
	return slices.DeleteFunc(
		slices.Clone(rows), func(r string) bool { return slices.Contains(planned(), r) },
	)
}

// planned are folders that have a row and are not there yet.
func planned() []string { return nil }

// Every row must be about something, or a misspelt one would check nothing.
func TestRowsAreAboutSomething(t *testing.T) {
	there := make(map[string]bool)
	for _, p := range ours(t) {
		folder, _ := local(p.ImportPath)
		row, _ := rowOf(folder)
		there[row] = true
	}
	for row := range may() {
		switch isPlanned := slices.Contains(planned(), row); {
		case !there[row] && !isPlanned:
			t.Errorf("row %q is about no package", row)
		case there[row] && isPlanned:
			t.Errorf("%q is there: take it out of planned", row)
		}
	}
}
