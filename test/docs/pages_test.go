package docs

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// pageTimeout bounds the examples of one page.
const pageTimeout = 2 * time.Minute

const scopes = "locks:read locks:write webhooks:write admin"

// TestExamplesRun: each block that is marked run succeeds on a server, after those before it on its
// page, and prints what the block marked output behind it shows.
func TestExamplesRun(t *testing.T) {
	root := repository(t)
	pages := marked(t, root)
	if len(pages) == 0 {
		t.Fatal("no page has a block that is marked run")
	}
	bin := t.TempDir()
	binary, err := rig.BuildAPI(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rig.BuildCommand(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(root, "examples", "install-clients"))
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			play(t, root, page, binary)
		})
	}
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func run(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// documents returns all pages of the repository, as paths from its root.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var pages []string
	skipped := []string{"node_modules", ".venv", ".git", "target", "data", "dist", ".check"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			page, err := filepath.Rel(root, path)
			pages = append(pages, page)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// marked returns the pages with blocks that run.
func marked(t *testing.T, root string) []string {
	t.Helper()
	return slices.DeleteFunc(documents(t, root), func(page string) bool {
		return !slices.ContainsFunc(blocks(read(t, root, page)), func(b *block) bool {
			return b.is("run")
		})
	})
}

func read(t *testing.T, root, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// play runs the blocks of a page on a server of its own, in an empty folder.
func play(t *testing.T, root, page, binary string) {
	found := blocks(read(t, root, page))
	text, err := script(found)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	dir := t.TempDir()
	save(t, dir, root, filepath.Base(page), text, found)
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	said, errs := shell(t, ctx, dir, filepath.Base(page), environment(t, ctx, root, dir, binary))
	if t.Failed() {
		t.Logf("%s printed\n%s\n%s", page, said, errs)
		return
	}
	compare(t, page, found, printed(said))
}

// curl fails if the server refuses, unless the example says so itself.
const curl = `#!/bin/sh
for word; do case $word in --fail*|-f*|-s*f*|-i*f*) exec CURL "$@" ;; esac; done
exec CURL --fail-with-body "$@"
`

func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// malformed is a line that begins with the status of a request that was never right.
var malformed = regexp.MustCompile(`(?m)^(400|401|403|405|413|415|5\d\d) `)

// compare holds what the blocks printed against the blocks marked output.
func compare(t *testing.T, page string, found []*block, got map[string]string) {
	t.Helper()
	for name := range programs(found) {
		if malformed.MatchString(got[name]) {
			t.Errorf("%s: a request of its %s was refused\n%s", page, name, got[name])
		}
	}
	last := ""
	for _, b := range found {
		switch {
		case b.is("run"):
			last = got[strconv.Itoa(b.line)]
		case b.lang == "output" && !agrees(b, last), b.is("answer") && !answers(b, last):
			t.Errorf("%s:%d: the block before it printed\n%s", page, b.line, last)
		}
	}
}

// save writes the script, the files of the page, and the settings of curl into the folder.
func save(t *testing.T, dir, root, page, script string, found []*block) {
	t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(page, script)
	write("bin/curl", strings.ReplaceAll(curl, "CURL", installed(t, "curl")))
	for _, b := range found {
		if name := b.file(); name != "" {
			write(name, b.text())
		} else if b.is("run") && b.lang != "sh" && b.lang != "bash" {
			write(b.name(), b.text())
		}
	}
	for name, text := range programs(found) {
		write(name, text)
	}
	modules := filepath.Join(root, "examples", "node_modules")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// environment starts a server, and returns what the examples find in their environment.
func environment(t *testing.T, ctx context.Context, root, dir, binary string) []string {
	t.Helper()
	server, err := rig.StartReplica(ctx, rig.ReplicaConfig{
		Binary: binary, DataDir: filepath.Join(t.TempDir(), "data"), Secret: strings.Repeat("d", 32),
		Args: []string{"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	token, err := server.Token("demo", scopes, "reader")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") // for a receiver
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{
		filepath.Join(dir, "bin"), filepath.Join(root, "examples", ".venv", "bin"),
		filepath.Dir(binary), os.Getenv("PATH"),
	}, ":")
	return append(os.Environ(), "FENCEPOST_URL="+server.URL(), "FENCEPOST_TOKEN="+token,
		"FENCEPOST_SOURCE="+root, "PATH="+path, "PORT="+port)
}

// shell runs a script, then ends whatever it left in the background.
func shell(
	t *testing.T, ctx context.Context, dir, script string, env []string,
) (said, errs string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	// A pipe would wait for what runs in the background.
	cmd.Stdout, cmd.Stderr = create(t, dir, ".out"), create(t, dir, ".err")
	if err := cmd.Run(); err != nil {
		t.Errorf("%v", err)
	}
	_ = group() // in most cases nothing is left
	return read(t, dir, ".out"), read(t, dir, ".err")
}

func create(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}
