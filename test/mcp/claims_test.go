package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository is a world whose programs run in a repository.
func repository(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, folder := range []string{".git", "src"} {
		if err := os.Mkdir(filepath.Join(w.folder, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// run runs a command of fencepost.
func (w *world) run(session string, args ...string) (string, error) {
	out, err := w.command(session, args...).CombinedOutput()
	return string(out), err
}

func (a *agent) claim(paths ...string) answer {
	a.t.Helper()
	return a.call(a.t.Context(), "claim", map[string]any{"paths": paths, "purpose": "to test"})
}

func (a *agent) unclaim(paths ...string) answer {
	a.t.Helper()
	return a.call(a.t.Context(), "unclaim", map[string]any{"paths": paths})
}

func TestClaimsOfAgentsExclude(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first, second := w.agentOf("first"), w.agentOf("second")
	if got := first.claim("src", "docs/faq.md"); got.State != "claimed" {
		t.Fatalf("a free path is %+v", got)
	}
	got := second.claim("src/a.go")
	if got.State != "busy" || got.Path != "src/a.go" || !strings.HasPrefix(got.By, "first@") ||
		!strings.HasSuffix(got.By, ": to test") {
		t.Errorf("a path in a claimed folder is %+v", got)
	}
	if got := second.claim(filepath.Join(w.folder, "src2")); got.State != "claimed" {
		t.Errorf("another path is %+v", got)
	}
	all := second.call(t.Context(), "claims", map[string]any{"all": true}).Claims
	if len(all) != 3 || all[0].Path != "docs/faq.md" || all[1].Path != "src" {
		t.Errorf("all claims are %+v", all)
	}
	if own := second.call(t.Context(), "claims", nil).Claims; len(own) != 1 || own[0].Path != "src2" {
		t.Errorf("the own claims are %+v", own)
	}
	if got := first.unclaim("src"); !slices.Equal(got.Released, []string{"src", "docs/faq.md"}) {
		t.Errorf("the release is %+v", got)
	}
	if got := second.claim("src/a.go"); got.State != "claimed" {
		t.Errorf("a released path is %+v", got)
	}
	if got := second.claim(); got.failure == "" {
		t.Errorf("a claim of nothing is %+v", got)
	}
	if got := second.claim("/"); !strings.Contains(got.failure, "repository") {
		t.Errorf("a path in no repository is %+v", got)
	}
}

// TestClaimsAreOfTheSession: the tools, hooks and commands of a session have the same claims. They
// stay when the agent's server ends, unless no other process has the session.
func TestClaimsAreOfTheSession(t *testing.T) {
	t.Parallel()
	w := repository(t)
	named, own := w.agentOf("named"), w.agentOf("")
	named.claim("named.go")
	own.claim("own.go")
	if out, err := w.run("named", "claim", "named.go"); err != nil {
		t.Errorf("the session has the path, but: %v, %s", err, out)
	}
	for _, a := range []*agent{named, own} {
		if err := a.in.Close(); err != nil {
			t.Error(err)
		}
		if err := <-a.exited; err != nil {
			t.Error(err)
		}
	}
	if out, err := w.run("other", "claim", "named.go"); err == nil {
		t.Errorf("the path of a named session was free: %s", out)
	}
	if out, err := w.run("other", "claim", "own.go"); err != nil {
		t.Errorf("the path of an agent that ended: %v, %s", err, out)
	}
}

func TestServerOfAnAgentRenewsClaims(t *testing.T) {
	t.Parallel()
	w := repository(t)
	if out, err := w.run("named", "claim", "--ttl", "30s", "a.go"); err != nil {
		t.Fatal(err, out)
	}
	w.agentOf("named")
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var first time.Time
	for {
		look, err := w.client.Look(ctx, "files:test:a.go")
		if err != nil || len(look.Holders) != 1 {
			t.Fatal(look, err)
		}
		ends, err := look.Holders[0].ExpiresAt.Time()
		if err == nil && first.IsZero() {
			first = ends
		}
		if ends.Sub(first) > 5*time.Second { // the end that is shown moves a bit by itself
			return
		}
		<-tick.C
	}
}
