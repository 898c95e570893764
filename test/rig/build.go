package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	modulePath = "github.com/fencepost/fencepost"
	etcdPath   = "go.etcd.io/etcd/server/v3"
	ctlPath    = "go.etcd.io/etcd/etcdctl/v3"
)

// BuildOption changes how a binary is built.
type BuildOption func(*buildOptions)

type buildOptions struct {
	race, stripped bool
	modules        string // the flag -modfile
	module         string // the folder of the module in the repository; "" is the server's
}

// Race builds the binary with Go's race detector; a race that it finds is
// written to the process's log and ends the process with exit code 66.
func Race(on bool) BuildOption {
	return func(o *buildOptions) { o.race = on }
}

// Stripped builds the binary without symbols, as users get it.
func Stripped() BuildOption {
	return func(o *buildOptions) { o.stripped = true }
}

// BuildEtcd returns the path of an etcd server of the version that go.mod names. It
// is built once for all tests of this machine, which takes most of a minute on two
// cores: the Go build cache would spare a second call the compiler, but not the linker.
func BuildEtcd(ctx context.Context) (string, error) {
	return buildOnce(ctx, "etcd", etcdPath, "go.mod")
}

// BuildEtcdctl returns the path of etcdctl, of the version that tools/etcdctl.mod names. It is
// built once, as BuildEtcd does.
func BuildEtcdctl(ctx context.Context) (string, error) {
	return buildOnce(ctx, "etcdctl", ctlPath, "tools/etcdctl.mod")
}

// buildOnce builds a package of the module file, unless the cache folder has it.
func buildOnce(ctx context.Context, name, pkg, modules string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	modules = "-modfile=" + filepath.Join(root, modules)
	version, err := goOutput(ctx, "list", modules, "-m", "-f", "{{.Version}}", pkg)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", name, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for %s: %w", name, err)
	}
	binary := filepath.Join(cache, "fencepost", name+"-"+version+"-"+runtime.Version(), name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o750); err != nil {
		return "", fmt.Errorf("make a folder for %s: %w", name, err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(binary), "build-")
	if err != nil {
		return "", fmt.Errorf("make a folder for %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	built, err := build(ctx, filepath.Join(fresh, name), pkg, []BuildOption{
		func(o *buildOptions) { o.modules = modules },
	})
	if err != nil {
		return "", err
	}
	return binary, os.Rename(built, binary) // another process may have been faster, with the same
}

// BuildAPI builds the API server of this module, ./cmd/api, and returns the
// path of the binary in dir.
func BuildAPI(ctx context.Context, dir string, options ...BuildOption) (string, error) {
	return build(ctx, filepath.Join(dir, "api"), modulePath+"/cmd/api", options)
}

// BuildCommand builds the command, the module cmd/fencepost, and returns the path of the
// binary in dir.
func BuildCommand(ctx context.Context, dir string, options ...BuildOption) (string, error) {
	const module = "cmd/fencepost"
	return build(ctx, filepath.Join(dir, "fencepost"), modulePath+"/"+module,
		append(options, func(o *buildOptions) { o.module = module }))
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
	if o.modules != "" {
		args = append(args, o.modules)
	}
	if o.race {
		args = append(args, "-race")
	}
	if o.stripped {
		args = append(args, "-ldflags", "-s -w")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = filepath.Join(root, o.module)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	dir, err := goOutput(ctx, "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", fmt.Errorf("find the folder of module %s: %w", modulePath, err)
	}
	return dir, nil
}

func goOutput(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	return strings.TrimSpace(string(out)), err
}
