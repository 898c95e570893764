package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

const root = "../.."

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// under returns the paths of the files below a folder with one of the extensions.
func under(t *testing.T, folder string, extensions ...string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(root), folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".terraform" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && slices.Contains(extensions, filepath.Ext(path)) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	flagText  = regexp.MustCompile(`(?m)["'\s]--([a-z][a-z0-9-]*)`)
	variables = regexp.MustCompile(`\bFENCEPOST_[A-Z0-9_]+`)
)

// flagsIn lists the flags that a text passes on.
func flagsIn(text string) []string {
	var all []string
	for _, m := range flagText.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// known is what a program's help says of its flags, each at the start of a line.
func known(help string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s+--?([a-z0-9-]+)`).FindAllStringSubmatch(help, -1) {
		all[m[1]] = true
	}
	return all
}

func helpOf(t *testing.T, program, help string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, help).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, help, err, out)
	}
	flags := known(string(out))
	if len(flags) < 20 {
		t.Fatalf("%s has %d flags; this test would check nothing", program, len(flags))
	}
	return flags
}

// TestServer builds the programs once and holds the deployments against them.
func TestServer(t *testing.T) {
	t.Parallel()
	api, err := rig.BuildAPI(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := rig.BuildEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("flags", func(t *testing.T) { flags(t, helpOf(t, api, "--help-all"), helpOf(t, etcd, "--help")) })
	t.Run("stderr", func(t *testing.T) { stderr(t, api) })
	t.Run("figures", func(t *testing.T) { asked(t, api, etcd) })
}

// flags: what the deployments pass to a program is what it takes.
func flags(t *testing.T, api, etcd map[string]bool) {
	t.Helper()
	compose := text(t, "deploy/compose.yaml")
	for where, part := range map[string]struct {
		text  string
		takes map[string]bool
	}{
		"deploy/helm/fencepost/templates/_server.tpl": {
			text(t, "deploy/helm/fencepost/templates/_server.tpl"), api,
		},
		"deploy/helm/fencepost/templates/etcd.yaml": {
			text(t, "deploy/helm/fencepost/templates/etcd.yaml"), etcd,
		},
		"x-fencepost of deploy/compose.yaml": {
			between(t, compose, "x-fencepost:", "\nservices:"), api,
		},
		"deploy/systemd/etcd.service": {text(t, "deploy/systemd/etcd.service"), etcd},
		"deploy/systemd/three-machines.yaml": {
			asFlags(text(t, "deploy/systemd/three-machines.yaml")), api,
		},
		"deploy/packages/server.yaml": {asFlags(text(t, "deploy/packages/server.yaml")), api},
		"etcd of deploy/compose.yaml": {between(t, compose, "\n  etcd-1:", "\n  fencepost-1:"), etcd},
	} {
		used := flagsIn(part.text)
		if len(used) < 3 {
			t.Errorf("%s passes on %d flags; this test would check nothing", where, len(used))
		}
		for _, f := range used {
			if !part.takes[f] {
				t.Errorf("%s: there is no flag --%s", where, f)
			}
		}
	}
	files := append(
		under(t, "deploy", ".yaml", ".tpl", ".tf", ".hcl", ".cfg", ".service"), "Dockerfile",
	)
	for _, path := range files {
		if strings.Contains(path, "deploy/recipes/") {
			continue // for the command line; test/commands runs them
		}
		for _, name := range variables.FindAllString(text(t, path), -1) {
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "FENCEPOST_")), "_", "-")
			if !api[flag] && name != "FENCEPOST_JWT_SECRET" {
				t.Errorf("%s: nothing reads %s", path, name)
			}
		}
	}
}

// asFlags writes the keys of a configuration file as flags, without its comments.
func asFlags(file string) string {
	file = regexp.MustCompile(`#.*`).ReplaceAllString(file, "")
	return regexp.MustCompile(`(?m)^([a-z])`).ReplaceAllString(file, " --$1")
}

// between cuts out of a text what stands from one mark to another.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, begins := strings.Cut(text, from)
	part, _, ends := strings.Cut(rest, to)
	if !begins || !ends {
		t.Fatalf("there is no part from %q to %q", from, to)
	}
	return part
}
