package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// TestInstallScriptChecksTheArchive: install.sh installs programs that work, and nothing of an
// archive that is damaged or that checksums.txt does not list.
func TestInstallScriptChecksTheArchive(t *testing.T) {
	t.Parallel()
	archive, sums := release(t)
	for name, c := range map[string]struct {
		sums    string
		damage  bool
		refusal string
	}{
		"a good archive":    {sums, false, ""},
		"a damaged archive": {sums, true, "checksum of " + archiveName() + " is wrong"},
		"an unlisted one":   {"", false, "does not list " + archiveName()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := httptest.NewServer(files(archive, c.sums, c.damage))
			defer from.Close()
			prefix := filepath.Join(t.TempDir(), "a prefix")
			out, err := install(t, from.URL, prefix)
			if c.refusal == "" {
				installed(t, prefix, out, err)
				return
			}
			if err == nil || !strings.Contains(out, c.refusal) {
				t.Errorf("%v, %s", err, out)
			}
			if _, err := os.Stat(prefix); err == nil {
				t.Error("a refused archive leaves files")
			}
		})
	}
}

func archiveName() string { return "fencepost_linux_" + runtime.GOARCH + ".tar.gz" }

// release returns the archive of this system and checksums.txt: of the folder FENCEPOST_DIST, or
// else made here in the same form.
func release(t *testing.T) (archive []byte, sums string) {
	t.Helper()
	folder := os.Getenv("FENCEPOST_DIST")
	if folder == "" {
		folder = made(t)
	}
	archive, err := os.ReadFile(filepath.Join(folder, archiveName()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(folder, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return archive, string(list)
}

// made makes a release.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	top := strings.TrimSuffix(archiveName(), ".tar.gz")
	in := filepath.Join(dir, top)
	if err := os.MkdirAll(filepath.Join(in, "man"), 0o750); err != nil {
		t.Fatal(err)
	}
	api, err := rig.BuildAPI(t.Context(), in)
	if err == nil {
		err = os.Rename(api, filepath.Join(in, "fencepost-server"))
	}
	if err == nil {
		_, err = rig.BuildCommand(t.Context(), in)
	}
	for _, page := range []string{"fencepost.1.gz", "fencepost-server.8.gz"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(in, "man", page), nil, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	tar := exec.CommandContext(t.Context(), "tar", "-czf", archiveName(), top)
	tar.Dir = dir
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(dir, archiveName()))
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), archiveName())
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files serves a release.
func files(archive []byte, sums string, damage bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /checksums.txt", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, sums)
	})
	mux.HandleFunc("GET /"+archiveName(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(archive)
		if damage {
			_, _ = w.Write([]byte{0}) // which tar and gzip would not mind
		}
	})
	return mux
}

func install(t *testing.T, from, prefix string) (out string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy/install.sh"))
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent",
		"PREFIX=" + prefix, "FENCEPOST_RELEASES=" + from,
	}
	text, err := c.CombinedOutput()
	return string(text), err
}

// installed: both programs run, and the command finds the server next to it.
func installed(t *testing.T, prefix, out string, err error) {
	t.Helper()
	if err != nil || !strings.Contains(out, "Add "+prefix+"/bin to PATH") {
		t.Errorf("%v: %s", err, out)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(prefix, "bin/fencepost"), "server", "version")
	c.Env = []string{"PATH=/nonexistent"}
	own, err := exec.CommandContext(
		t.Context(), filepath.Join(prefix, "bin/fencepost-server"), "version",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := c.CombinedOutput(); err != nil || string(text) != string(own) {
		t.Errorf("fencepost server version: %v: %s, not %s", err, text, own)
	}
	help, err := exec.CommandContext(t.Context(), c.Path, "server", "token", "--help").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(help), "Flags of fencepost-server token.") {
		t.Errorf("fencepost server token --help: %v: %s", err, help)
	}
	if _, err := os.Stat(filepath.Join(prefix, "share/man/man8/fencepost-server.8.gz")); err != nil {
		t.Error(err)
	}
}
