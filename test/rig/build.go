package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	modulePath = "github.com/fencepost/fencepost"
	etcdPath   = "go.etcd.io/etcd/server/v3"
)

// BuildOption changes how a binary is built.
type BuildOption func(*buildOptions)

type buildOptions struct {
	race bool
	tags string
}

// Race builds the binary with Go's race detector; a race that it finds is
// written to the process's log and ends the process with exit code 66.
func Race(on bool) BuildOption {
	return func(o *buildOptions) { o.race = on }
}

// Tags builds the binary with these build tags, separated by commas.
func Tags(tags string) BuildOption {
	return func(o *buildOptions) { o.tags = tags }
}

// BuildEtcd builds the etcd server of the version that go.mod names and returns
// the path of the binary in dir. The Go build cache makes a second call cheap;
// the first one takes most of a minute on two cores.
func BuildEtcd(ctx context.Context, dir string, options ...BuildOption) (string, error) {
	return build(ctx, filepath.Join(dir, "etcd"), etcdPath, options)
}

// BuildAPI builds the API server of this module, ./cmd/api, and returns the
// path of the binary in dir.
func BuildAPI(ctx context.Context, dir string, options ...BuildOption) (string, error) {
	return build(ctx, filepath.Join(dir, "api"), modulePath+"/cmd/api", options)
}

func build(ctx context.Context, binary, pkg string, options []BuildOption) (string, error) {
	var o buildOptions
	for _, option := range options {
		option(&o)
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", binary}
	if o.race {
		args = append(args, "-race")
	}
	if o.tags != "" {
		args = append(args, "-tags", o.tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("find the folder of module %s: %w", modulePath, err)
	}
	return strings.TrimSpace(string(out)), nil
}
