package mcp_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/test/rig"
)

// packages are those of package.json. They need a newer Node than the clients: it is one of them.
var packages = sync.OnceValues(func() (string, error) {
	return rig.FetchNPM(context.Background(), "package.json")
})

// check runs a program of the packages.
func check(t *testing.T, program string, args ...string) {
	t.Helper()
	dir, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "node"),
		append([]string{filepath.Join(bin, program)}, args...)...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
}

// TestConformance runs the conformance suite of the protocol. conformance.yaml has the scenarios
// that do not apply.
func TestConformance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check(t, "conformance", "server", "--url", w.overHTTP(), "--suite", "all",
		"--expected-failures", "conformance.yaml")
}

// TestInspector has the protocol's inspector look at each tool and resource: it compares answers
// with their schemas, and schemas with what clients support.
func TestInspector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, method := range [][]string{
		{"tools/list", "--strict"},
		{"tools/list", "--strict", "--protocol-era", "modern"},
		{
			"tools/call", "--tool-name", "acquire", "--tool-arg", "name=env", "wait_seconds=0",
			"purpose=to test", "mode=semaphore", "limit=2",
		},
		{"tools/call", "--tool-name", "status", "--tool-arg", "name=env"},
		{"tools/call", "--tool-name", "list", "--tool-arg", "prefix=e"},
		{"tools/call", "--tool-name", "who_blocks", "--tool-arg", "name=env"},
		{"tools/call", "--tool-name", "claim", "--tool-args-json", `{"paths":["a.go"],"wait_seconds":1}`},
		{"tools/call", "--tool-name", "claims", "--tool-arg", "all=true"},
		{"tools/call", "--tool-name", "unclaim"},
		{"resources/templates/list"},
		{"resources/read", "--uri", "fencepost://lock/env"},
		{"resources/read", "--uri", "fencepost://queue/env", "--protocol-era", "modern"},
	} {
		t.Run(strings.Join(method, " "), func(t *testing.T) {
			args := []string{
				"--cli", "-e", "FENCEPOST_URL=" + w.server.URL(), "-e", "FENCEPOST_TOKEN=" + w.bearer,
				"-e", "FENCEPOST_REPO=test", "-e", "XDG_STATE_HOME=" + t.TempDir(), "--method",
			}
			check(t, "mcp-inspector", slices.Concat(args, method, []string{"--", program(), "mcp"})...)
		})
	}
}
