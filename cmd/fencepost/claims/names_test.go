package claims

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/client"
)

var valid = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}$`)

// elements of paths that are easy to confuse.
var elements = []string{
	"a", "A", "b", "a:b", "a=3Ab", "a+b", "a b", "=", "==", "é", "e\u0301", "..a", ".a", "-", "日本",
	"+", ":", "=2B", strings.Repeat("x", 90), strings.Repeat("x", 91), strings.Repeat("=", 70),
}

func somePath(r *rand.Rand) string {
	var steps []string
	for range 1 + r.IntN(5) {
		steps = append(steps, elements[r.IntN(len(elements))])
	}
	return strings.Join(steps, "/")
}

// TestPathsShareNoLock: two paths, repositories, branches or work trees never have one lock, and
// each name is valid.
func TestPathsShareNoLock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := map[string]Place{}
	for range 50_000 {
		repo := []string{"github.com/acme/web", "github.com/acme", "acme+web", "host/a:b"}[r.IntN(4)]
		path := somePath(r)
		for _, p := range []Place{
			{Repo: repo, Path: path},
			{Repo: repo, Path: root},
			{Repo: repo + "/" + path, Path: root},
			{Repo: repo, Branch: path},
			{Tree: repo + "/" + path},
		} {
			name := p.Name()
			if other, known := names[name]; known && other != p {
				t.Fatalf("%+v and %+v share %s", p, other, name)
			}
			names[name] = p
			if !valid.MatchString(name) {
				t.Fatalf("%+v has the name %q", p, name)
			}
		}
	}
	if len(names) < 10_000 {
		t.Errorf("only %d names", len(names))
	}
}

// TestClaimsOfFoldersExclude: a claim excludes those of its own path, of the folders above and of
// the paths below, and no others.
func TestClaimsOfFoldersExclude(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		p, q := Place{Repo: "r", Path: somePath(r)}, Place{Repo: "r", Path: somePath(r)}
		if r.IntN(2) == 0 {
			q.Path = p.Path + "/" + q.Path
		}
		want := p.covers(q) || q.covers(p)
		if got := conflict(p.locks(false), q.locks(false)); got != want {
			t.Fatalf("%s and %s: exclude each other: %v", p.Path, q.Path, got)
		}
		if p != q && conflict(p.locks(true), q.locks(true)) {
			t.Fatalf("%s and %s exclude each other though both only read", p.Path, q.Path)
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"server.go": "server.go", "a b": "a=20b", "a:b": "a=3Ab", "é": "=C3=A9", "a+b": "a=2Bb",
		"github.com/acme/web": "github.com+acme+web",
	} {
		if got := escape(text); got != want || unescape(got) != text {
			t.Errorf("%q is %q and back %q", text, got, unescape(got))
		}
	}
	p := Place{Repo: "github.com/acme/web", Path: "src/api/server.go"}
	if p.Name() != "files:github.com+acme+web:src:api:server.go" {
		t.Error(p.Name())
	}
}

// TestManyPathsShareParents: locks of a claim are each once, and exclusive wins.
func TestManyPathsShareParents(t *testing.T) {
	var places []Place
	for _, path := range []string{"src/a.go", "src/b.go", "src/x/c.go", "src/x"} {
		places = append(places, Place{Repo: "r", Path: path})
	}
	locks := union(places, false)
	exclusive := slices.DeleteFunc(slices.Clone(locks), func(l client.Claim) bool {
		return l.Mode == client.Shared
	})
	if len(locks) != 6 || len(exclusive) != 4 {
		t.Errorf("the locks are %+v", locks)
	}
}

// TestSpellings: each spelling of a path is one path.
func TestSpellings(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(base)
	for _, folder := range []string{"repo/.git", "repo/src/api", "elsewhere"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"repo/link": "src/api", "repo/src/up": "..", "door": base + "/repo", "repo/out": "../elsewhere",
		"repo/loop": "loop",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for spelling, want := range map[string]string{
		"repo/src/api/new.go":        "src/api/new.go",
		"./repo//src/./api/new.go":   "src/api/new.go",
		"repo/src/../src/api/new.go": "src/api/new.go",
		"repo/link/new.go":           "src/api/new.go",
		"repo/link/../api/new.go":    "src/api/new.go", // as the system sees it, not the text
		"door/src/up/link/new.go":    "src/api/new.go",
		base + "/door/link/new.go":   "src/api/new.go",
		"repo/not/there/yet":         "not/there/yet",
		"repo/caf\u00e9":             "caf\u00e9",
		"repo/cafe\u0301":            "caf\u00e9",
		"repo":                       ".",
		"door/":                      ".",
	} {
		places, err := (&Session{config: Config{Repo: "r"}}).Places(spelling)
		if err != nil || places[0].Path != want {
			t.Errorf("%s is %+v, %v", spelling, places, err)
		}
	}
	for _, path := range []string{"repo/loop/x", "repo/out/x"} {
		if resolved, folder, err := find(path); err == nil {
			t.Errorf("%s is %s in %s", path, resolved, folder)
		}
	}
}

// TestRemotes: ssh and https addresses of a repository are one id.
func TestRemotes(t *testing.T) {
	for _, address := range []string{
		"git@github.com:acme/web.git", "ssh://git@github.com/acme/web.git",
		"ssh://git@github.com:22/acme/web", "https://github.com/acme/web.git",
		"https://user:secret@GitHub.com/Acme/web/", "git://github.com/acme/web",
		"github.com:acme/web", "https://github.com:443/acme/web.git/",
	} {
		if got := addressed(address); got != "github.com/acme/web" {
			t.Errorf("%s is %q", address, got)
		}
	}
	for _, folder := range []string{"/srv/git/web.git", "../web", "file:///srv/web", `C:\web`, "./a:b"} {
		if got := addressed(folder); got != "" {
			t.Errorf("the folder %s is %q", folder, got)
		}
	}
}
