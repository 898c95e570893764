package claims

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// ErrNoRepository means that a path is in no git work tree.
var ErrNoRepository = errors.New("not in a git repository")

// Places finds the repository of each path. A path is relative to the working folder.
func (s *Session) Places(paths ...string) ([]Place, error) {
	var places []Place
	for _, text := range paths {
		resolved, folder, err := find(text)
		if err != nil {
			return nil, err
		}
		id, err := s.repo(folder)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(folder, resolved)
		if err != nil {
			return nil, err
		}
		places = append(places, Place{Repo: id, Path: norm.NFC.String(filepath.ToSlash(path))})
	}
	return places, nil
}

// Branch returns the branch with the name, or the one that is checked out where the path is.
func (s *Session) Branch(path, name string) (Place, error) {
	_, folder, err := find(path)
	if err != nil {
		return Place{}, err
	}
	if name == "" {
		current, err := git(folder, "branch", "--show-current")
		if err != nil {
			return Place{}, err
		}
		name = cmp.Or(current, "HEAD")
	}
	id, err := s.repo(folder)
	return Place{Repo: id, Branch: name}, err
}

// Tree returns the work tree that the path is in.
func (*Session) Tree(path string) (Place, error) {
	_, folder, err := find(path)
	return Place{Tree: hostname() + filepath.ToSlash(folder)}, err
}

func (s *Session) repo(folder string) (string, error) {
	if s.config.Repo != "" {
		return cmp.Or(addressed(s.config.Repo), s.config.Repo), nil
	}
	return repository(folder)
}

// resolve returns the one absolute form of a path: without symbolic links and dots, in the spelling
// of the disk. What does not exist yet stays as it is.
func resolve(text string) (string, error) {
	const separator = string(filepath.Separator)
	known, missing := text, ""
	if !filepath.IsAbs(text) {
		folder, err := os.Getwd()
		if err != nil {
			return "", err
		}
		known = folder + separator + text // unclean: only the disk knows where dots lead
	}
	for {
		existing, err := filepath.EvalSymlinks(known)
		if err == nil {
			return filepath.Join(spelled(existing), missing), nil
		}
		folder, step := filepath.Split(strings.TrimRight(known, separator))
		if step == "" || !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		known, missing = folder, filepath.Join(step, missing)
	}
}

// spelled returns an existing path as the disk has it. On Windows it is so without links.
func spelled(path string) string {
	folder := filepath.Dir(path)
	if runtime.GOOS != "darwin" || folder == path {
		return path
	}
	name := filepath.Base(path)
	entries, _ := os.ReadDir(folder) // without any the name stays
	for _, e := range entries {
		if e.Name() == filepath.Base(path) {
			return filepath.Join(spelled(folder), e.Name())
		}
		if strings.EqualFold(norm.NFC.String(e.Name()), norm.NFC.String(name)) {
			name = e.Name()
		}
	}
	return filepath.Join(spelled(folder), name)
}

// find resolves a path and returns the top folder of the work tree that it is in.
func find(text string) (resolved, folder string, err error) {
	if resolved, err = resolve(text); err != nil {
		return "", "", err
	}
	for folder = resolved; ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(filepath.Join(folder, ".git")); err == nil {
			return resolved, folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", "", fmt.Errorf("%s: %w", resolved, ErrNoRepository)
		}
	}
}

// repository returns the id of the repository with a work tree: the address of its remote origin in
// one form, or else the host and the folder.
func repository(top string) (string, error) {
	address, err := git(top, "ls-remote", "--get-url", "origin") // asks no server
	if err == nil && address == "origin" {                       // which has no address
		address, err = git(top, "rev-parse", "--git-common-dir")
	}
	if err != nil {
		return "", err
	}
	if id := addressed(address); id != "" {
		return id, nil
	}
	folder := strings.TrimPrefix(address, "file://")
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(top, folder)
	}
	folder, err = resolve(folder)
	return path.Join(hostname(), filepath.ToSlash(folder)), err
}

// addressed returns host/path of a remote's address in small letters, without user, port and .git,
// or nothing for a folder of this machine.
func addressed(address string) string {
	host, folder, _ := strings.Cut(address, ":")
	isFolder := len(host) < 2 || strings.ContainsAny(host, `/\`) // C:\folder, or ./a:b
	if folder != "" && !isFolder && !strings.Contains(address, "://") {
		address = "ssh://" + host + "/" + folder
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	folder = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	return strings.ToLower(path.Join(u.Hostname(), folder))
}

// git runs git in a folder and returns the line that it prints.
func git(folder string, args ...string) (string, error) {
	text, err := exec.Command("git", append([]string{"-C", folder}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(exit.Stderr))
	}
	return strings.TrimSpace(string(text)), err
}

// hostname is that of this machine.
func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}
