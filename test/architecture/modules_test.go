package architecture_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClientBringsNoOtherModule: a program that uses the Go client has no module of a third party
// in its go.sum, and so keeps the versions of its own. No network is needed to find that out.
func TestClientBringsNoOtherModule(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	watchSources(t)
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	program := t.TempDir()
	for name, text := range map[string]string{
		"main.go": "package main\n\nimport _ \"" + module + "/client\"\n" +
			"import _ \"" + module + "/client/fencehttp\"\n" +
			"import _ \"" + module + "/client/fencesql\"\n\nfunc main() {}\n",
		"go.mod": "module first\n\ngo 1.26.0\n\nreplace " + module + "/api => " + root + "/api\n\n" +
			"replace " + module + "/client => " + root + "/client\n",
	} {
		if err := os.WriteFile(filepath.Join(program, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goIn(t, program, "mod", "tidy")
	goIn(t, program, "build", "-o", os.DevNull, ".")
	if sums, err := os.ReadFile(filepath.Join(program, "go.sum")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("go.sum is there (%v):\n%s", err, sums)
	}
	got := strings.Fields(goIn(t, program, "list", "-m", "-f", "{{.Path}}", "all"))
	if want := []string{"first", module + "/api", module + "/client"}; !slices.Equal(got, want) {
		t.Errorf("the program has the modules %v, not %v", got, want)
	}
}

// TestCommandIsApartFromTheServer: of this repository the command's module needs the client alone.
func TestCommandIsApartFromTheServer(t *testing.T) {
	watchSources(t)
	folder := filepath.Join("..", "..", "cmd", "fencepost")
	all := goIn(t, folder, "list", "-m", "-f", "{{.Path}}", "all")
	own := slices.DeleteFunc(strings.Fields(all), func(path string) bool {
		return !strings.HasPrefix(path, module)
	})
	want := []string{module + "/cmd/fencepost", module + "/api", module + "/client"}
	if !slices.Equal(sorted(own), sorted(want)) {
		t.Errorf("the command has the modules %v, not %v", own, want)
	}
}

// drivers says which library each check of fencekit in Go is for.
func drivers() map[string]string {
	return map[string]string{
		"dynamodb": "github.com/aws/aws-sdk-go-v2",
		"etcd":     "go.etcd.io/etcd/client",
		"mongodb":  "go.mongodb.org/mongo-driver",
		"s3":       "github.com/aws/aws-sdk-go-v2",
	}
}

// TestChecksAreCopiedAlone: the Go files of a resource compile in the program of a user who copies
// them, with the driver of that resource and with nothing of other resources or of ours.
func TestChecksAreCopiedAlone(t *testing.T) {
	all := append(slices.Collect(maps.Values(drivers())), module)
	for resource, driver := range drivers() {
		needs := goIn(t, filepath.Join("..", "..", "fencekit"), "list", "-deps",
			"-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{else}}{{.Path}}{{end}}{{end}}", "./"+resource)
		used := false
		for _, need := range strings.Fields(needs) {
			used = used || under(need, []string{driver})
			if need != module+"/fencekit/"+resource && !under(need, []string{driver}) && under(need, all) {
				t.Errorf("the check of %s brings %s", resource, need)
			}
		}
		if !used {
			t.Errorf("the check of %s does without %s: its row is about nothing", resource, driver)
		}
	}
}

// TestEachCheckHasItsDriver: a check in Go that is new gets a row.
func TestEachCheckHasItsDriver(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "fencekit", "*", "check.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if resource := filepath.Base(filepath.Dir(file)); drivers()[resource] == "" {
			t.Errorf("%s has no row in this test: say which driver it is for", file)
		}
	}
}
