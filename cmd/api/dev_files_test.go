package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDevFilesOfAnotherUser: in a folder that others may write to, --dev neither trusts nor follows
// what is not its own.
func TestDevFilesOfAnotherUser(t *testing.T) {
	t.Parallel()
	foreign := func(path string) {
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := file(t, secret)
	link := func(path string) {
		if err := os.Symlink(elsewhere, path); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(path string) {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kinds := map[string]func(string){"Link": link, "Pipe": pipe}
	if os.Geteuid() == 0 { // who alone can give a file to another user
		kinds["Foreign"] = foreign
	}
	for _, name := range []string{devSecretFile, devTokenFile} {
		for kind, plant := range kinds {
			t.Run(name+kind, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				plant(path)
				fails(
					t, 1, nil, []string{"--dev", "--listen", "127.0.0.1:0", "--data-dir", dir}, path,
					"not a file of this user's own",
				)
				if name == devSecretFile {
					fails(t, 1, nil, []string{"token", "--dev", "--data-dir", dir, "--tenant", "acme"}, path)
				}
				if text, err := os.ReadFile(elsewhere); err != nil || string(text) != secret {
					t.Errorf("the file behind the link: %q, %v", text, err)
				}
			})
		}
	}
}

// TestDevTokenIsReplaced: each start writes its token into a new file, which others cannot have
// open.
func TestDevTokenIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, devTokenFile)
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	start(t, "--dev", "--data-dir", dir)
	was := make([]byte, 100)
	n, _ := open.Read(was)
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), ".") != 2 || string(was[:n]) != "old" {
		t.Errorf("%q, %v; the old file has %q", text, err, was[:n])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
