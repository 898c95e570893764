package rig

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// FetchNPM returns a folder whose node_modules has what a package.json pins. It is fetched once for
// all tests of this machine.
func FetchNPM(ctx context.Context, packageJSON string) (string, error) {
	text, err := os.ReadFile(packageJSON)
	if err != nil {
		return "", fmt.Errorf("read what to fetch: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for packages: %w", err)
	}
	npm := filepath.Join(cache, "fencepost", "npm")
	dir := filepath.Join(npm, fmt.Sprintf("%x", sha256.Sum256(text))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(npm, 0o750); err != nil {
		return "", fmt.Errorf("make a folder for packages: %w", err)
	}
	fresh, err := os.MkdirTemp(npm, "fetch-")
	if err != nil {
		return "", fmt.Errorf("make a folder for packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.WriteFile(filepath.Join(fresh, "package.json"), text, 0o600); err != nil {
		return "", fmt.Errorf("write what to fetch: %w", err)
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--silent")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch what %s pins: %w\n%s", packageJSON, err, out)
	}
	err = os.Rename(fresh, dir)
	if errors.Is(err, fs.ErrExist) { // another process was faster, with the same
		err = nil
	}
	return dir, err
}
