package commands_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// project is a repository with work trees on this machine.
type project struct {
	*user
	trees []string
}

func (u *user) project(trees int) *project {
	u.t.Helper()
	p := &project{user: u}
	u.env = append(u.env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"PATH="+filepath.Dir(programs.fencepost)+":"+os.Getenv("PATH"))
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		u.env = append(u.env, "GIT_"+who+"_NAME=bot", "GIT_"+who+"_EMAIL=bot@example.com")
	}
	p.git(u.dir, "init", "-q", "--bare", "-b", "main", "origin.git")
	for i := range trees {
		tree := u.path(fmt.Sprintf("tree-%d", i))
		p.git(u.dir, "init", "-q", "-b", "main", tree)
		p.git(tree, "remote", "add", "origin", u.path("origin.git"))
		p.trees = append(p.trees, tree)
	}
	return p
}

// git runs git in a folder.
func (p *project) git(folder string, args ...string) {
	p.t.Helper()
	p.in(folder).program("git", args...).expect(0)
}

// in is the user in a folder.
func (u *user) in(folder string) *user { return &user{t: u.t, env: u.env, dir: folder} }

// agent is a session that knows files as it has read or written them last.
type agent struct {
	*project
	name, tree string
	ttl        time.Duration
	hooked     bool
	skew       time.Duration // of its clock
	known      map[string]string
}

func (p *project) agent(name string, tree int, ttl time.Duration) *agent {
	return &agent{
		project: p, name: name, tree: p.trees[tree], ttl: ttl, hooked: true, known: map[string]string{},
	}
}

// send sends a call of the agent's hook and returns the reason of a refusal.
func (a *agent) send(event, tool string, input map[string]any, wait time.Duration) string {
	call, err := json.Marshal(map[string]any{
		"session_id": a.name, "cwd": a.tree, "hook_event_name": event, "tool_name": tool,
		"tool_input": input,
	})
	if err != nil {
		a.t.Error(err)
	}
	hook := a.in(a.tree).command(
		"hook", "--ttl", a.ttl.String(), "--wait", wait.String(), "claude")
	hook.Stdin = bytes.NewReader(call)
	if err := hook.Run(); err != nil {
		a.t.Errorf("%s %s: %v: %s", a.name, event, err, &hook.stderr)
	}
	var answer struct {
		HookSpecificOutput struct{ PermissionDecision, PermissionDecisionReason string }
	}
	if hook.stdout.Len() > 0 {
		if err := json.Unmarshal(hook.stdout.Bytes(), &answer); err != nil {
			a.t.Errorf("%s: %v", &hook.stdout, err)
		}
		if answer.HookSpecificOutput.PermissionDecision != "deny" {
			a.t.Errorf("%s answers %s", a.name, &hook.stdout)
		}
	}
	return answer.HookSpecificOutput.PermissionDecisionReason
}

func (a *agent) asks(file string, wait time.Duration) string {
	if !a.hooked {
		return ""
	}
	a.shiftClock()
	return a.send("PreToolUse", "Write", map[string]any{"file_path": a.path(file)}, wait)
}

func (a *agent) path(file string) string { return filepath.Join(a.tree, filepath.FromSlash(file)) }

func (a *agent) stops() {
	if a.hooked {
		a.send("Stop", "", nil, 0)
	}
}

// write adds a line to what the agent knows of the file, and writes all of it, as agents do.
func (a *agent) write(file, line string) {
	if _, known := a.known[file]; !known {
		text, err := os.ReadFile(a.path(file))
		if err != nil && !os.IsNotExist(err) {
			a.t.Error(err)
		}
		a.known[file] = string(text)
	}
	a.known[file] += line + "\n"
	if err := os.MkdirAll(filepath.Dir(a.path(file)), 0o700); err != nil {
		a.t.Error(err)
	}
	if err := os.WriteFile(a.path(file), []byte(a.known[file]), 0o600); err != nil {
		a.t.Error(err)
	}
}

// ledger is what the agents did: which has which file, and each line that it wrote.
type ledger struct {
	mu    sync.Mutex
	owner map[string]string
	lines map[string][]string // by the file in its work tree
	edits int
}

const allEdits = 200

// take notes an edit that the hook let pass, and reports another agent that has the file.
func (l *ledger) take(a *agent, file string) (line string, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.owner[file]; a.hooked && other != "" && other != a.name {
		a.t.Errorf("%s may write %s while %s has it", a.name, file, other)
	}
	l.owner[file], l.edits = a.name, l.edits+1
	line = fmt.Sprintf("%s %d", a.name, l.edits)
	l.lines[a.path(file)] = append(l.lines[a.path(file)], line)
	return line, l.edits >= allEdits
}

// leave notes that the agent has no file any more.
func (l *ledger) leave(a *agent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for file, owner := range l.owner {
		if owner == a.name {
			delete(l.owner, file)
		}
	}
}

// lost counts the lines that are not in their files any more.
func (l *ledger) lost(t *testing.T) (lost int) {
	t.Helper()
	for path, lines := range l.lines {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept := strings.Split(string(text), "\n")
		for _, line := range lines {
			if !slices.Contains(kept, line) {
				lost++
			}
		}
	}
	return lost
}

// work edits files until there are enough edits, or until the agent made so many.
func (a *agent) work(l *ledger, seed uint64, most int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for made := 0; made < most; {
		file := fmt.Sprintf("src/%d/%d.go", r.IntN(5), r.IntN(4))
		reason := a.asks(file, 300*time.Millisecond)
		switch {
		case strings.Contains(reason, "read it again"):
			delete(a.known, file)
			continue
		case reason != "" && !strings.Contains(reason, "claimed by"):
			a.t.Errorf("%s: %s", a.name, reason)
			return
		case reason == "":
			line, done := l.take(a, file)
			a.write(file, line)
			if made++; done {
				return
			}
		}
		if reason != "" || r.IntN(2) == 0 {
			l.leave(a)
			a.stops()
		}
	}
}

// TestAgentsShareARepository: eight agents in two work trees make 200 edits of 20 files. No edit
// passes while another agent has the file, and none is lost, although one agent dies with its
// claims, one sleeps for longer than its claims last, and the clock of one is wrong. Without hooks
// edits are lost.
func TestAgentsShareARepository(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	t.Run("without hooks", func(t *testing.T) {
		p, l := u.project(1), &ledger{owner: map[string]string{}, lines: map[string][]string{}}
		var all sync.WaitGroup
		for i := range 8 {
			a := p.agent(fmt.Sprint("free-", i), 0, time.Minute)
			a.hooked = false
			all.Go(func() { a.work(l, uint64(i), allEdits) })
		}
		all.Wait()
		if lost := l.lost(t); lost == 0 {
			t.Error("no edit was lost: the test would see nothing")
		}
	})
	u = newUser(t)
	p, l := u.project(2), &ledger{owner: map[string]string{}, lines: map[string][]string{}}
	const short = 3 * time.Second
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() { p.agent(fmt.Sprint("agent-", i), i%2, time.Minute).work(l, uint64(i), allEdits) })
	}
	off := p.agent("off", 1, time.Minute)
	off.skew = time.Hour
	all.Go(func() { off.work(l, 5, allEdits) })
	dies, sleeps := p.agent("dies", 0, short), p.agent("sleeps", 1, short)
	all.Go(func() {
		dies.asks("src/dead.go", 0)
		died := time.Now()
		next := p.agent("next", 1, time.Minute)
		if reason := next.asks("src/dead.go", 20*time.Second); reason != "" {
			t.Errorf("%v after the death: %s", time.Since(died), reason)
		}
	})
	all.Go(func() {
		sleeps.asks("src/sleepy.go", 0)
		sleeps.write("src/sleepy.go", "mine")
		next := p.agent("visitor", 1, time.Minute)
		if reason := next.asks("src/sleepy.go", 20*time.Second); reason != "" {
			t.Errorf("the claim of a sleeper lasts: %s", reason)
		}
		next.write("src/sleepy.go", "theirs")
		next.stops()
		reason := sleeps.asks("src/sleepy.go", 0)
		if !strings.Contains(reason, "read it again") || !strings.Contains(reason, "visitor@") {
			t.Errorf("the sleeper gets the answer %q", reason)
		}
		if reason := sleeps.asks("src/sleepy.go", 0); reason != "" {
			t.Errorf("the sleeper is refused twice: %s", reason)
		}
	})
	all.Wait()
	if lost := l.lost(t); lost != 0 || l.edits < allEdits {
		t.Errorf("%d of %d edits are lost", lost, l.edits)
	}
}

// shiftClock sets the times in the agent's state to those of a clock that is an hour off, one way
// and then the other.
func (a *agent) shiftClock() {
	if a.skew == 0 {
		return
	}
	a.skew = -a.skew
	states, err := filepath.Glob(a.user.path(".local/state/fencepost/claims/*.json"))
	if err != nil {
		a.t.Error(err)
	}
	for _, path := range states {
		text, err := os.ReadFile(path)
		var state map[string]any
		if err != nil || json.Unmarshal(text, &state) != nil || state["session"] != a.name {
			continue
		}
		claims, _ := state["claims"].([]any)
		for _, c := range claims {
			c.(map[string]any)["renewed"] = time.Now().Add(a.skew)
		}
		if text, err = json.Marshal(state); err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			a.t.Error(err)
		}
	}
}

// TestLapsedClaim: a claim that ended and that no other session had meanwhile is taken again
// without a word, also if others claimed files next to it.
func TestLapsedClaim(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	a, b := p.agent("a", 0, 2*time.Second), p.agent("b", 0, time.Minute)
	a.asks("src/x.go", 0)
	b.asks("src/y.go", 0)
	poll.Until(t, "the end of the claim", func() bool {
		return !strings.Contains(p.in(a.tree).command("claims", "--all", "-o", "name").expect(0), "x.go")
	})
	if reason := a.asks("src/x.go", 0); reason != "" {
		t.Error(reason)
	}
	a.stops()
	b.stops()
	b.in(b.tree).command("claim", "--session", "b", "src").expect(0) // a folder is its files
	b.stops()
	if reason := a.asks("src/x.go", 0); !strings.Contains(reason, "b@") {
		t.Errorf("after a claim of the folder: %q", reason)
	}
}

// TestRevokedClaim: a call asks the server whether the claim still stands, however new it is.
func TestRevokedClaim(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	p.env = append(p.env, "FENCEPOST_REPO=revoked")
	a, b := p.agent("a", 0, time.Minute), p.agent("b", 0, time.Minute)
	a.asks("x.go", 0)
	p.command("revoke", "--yes", "--reason", "the tests need it", "files:revoked:x.go").expect(0)
	if reason := b.asks("x.go", 0); reason != "" {
		t.Error(reason)
	}
	if reason := a.asks("x.go", 0); !strings.Contains(reason, `x.go is claimed by "b@`) {
		t.Errorf("the edit of a revoked claim: %q", reason)
	}
}

// TestSessionBeginsAndEnds: a session gives its name to the shells that it starts, and leaves no
// claim and no state.
func TestSessionBeginsAndEnds(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	p.env = append(p.env, "CLAUDE_ENV_FILE="+p.user.path("env"))
	a := p.agent("it's", 0, time.Minute)
	a.send("SessionStart", "", nil, 0)
	a.asks("x.go", 0)
	named := p.in(a.tree).program("sh", "-c", `. "$CLAUDE_ENV_FILE"; fencepost claims -o name`).expect(0)
	if !strings.Contains(named, "x.go") {
		t.Errorf("the claims in a shell are %q", named)
	}
	a.send("SessionEnd", "", nil, 0)
	p.agent("idle", 0, time.Minute).send("SessionEnd", "", nil, 0) // which had no claims
	states, err := filepath.Glob(p.user.path(".local/state/fencepost/claims/*.json"))
	if err != nil || len(states) != 0 {
		t.Errorf("the states %v, %v", states, err)
	}
	if seen := p.in(a.tree).command("claims", "--all").expect(0); seen != "" {
		t.Errorf("the server has %s", seen)
	}
}

// TestEachCallRenews: also a call that writes nothing keeps the claims of its session.
func TestEachCallRenews(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	a := p.agent("a", 0, time.Minute)
	a.asks("x.go", 0)
	a.skew = time.Hour
	a.shiftClock() // to an hour ago
	a.send("PreToolUse", "Bash", map[string]any{"command": "make"}, 0)
	states, err := filepath.Glob(p.user.path(".local/state/fencepost/claims/*.json"))
	if err != nil || len(states) != 1 {
		t.Fatal(states, err)
	}
	text, err := os.ReadFile(states[0])
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ Claims []struct{ Renewed time.Time } }
	if err := json.Unmarshal(text, &state); err != nil || len(state.Claims) != 2 {
		t.Fatalf("%s: %v", text, err)
	}
	for _, c := range state.Claims {
		if time.Since(c.Renewed) > 30*time.Minute {
			t.Errorf("the last renewal was at %v", c.Renewed)
		}
	}
}

// TestHooksAtOnce: ten calls of one session at once claim each file once, and keep all claims.
func TestHooksAtOnce(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	a := p.agent("busy", 0, time.Minute)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if reason := a.asks(fmt.Sprintf("src/%d.go", i/2), time.Second); reason != "" {
				t.Error(reason)
			}
		})
	}
	all.Wait()
	listed := strings.Fields(p.in(a.tree).command(
		"claims", "--session", "busy", "-o", "name").expect(0))
	if len(listed) < 6 { // with the work tree
		t.Errorf("the claims are %q", listed)
	}
	seen := p.in(a.tree).command("claims", "--all", "-o", "name").expect(0)
	if len(strings.Fields(seen)) != 5 {
		t.Errorf("the server has %q", seen)
	}
	states, err := filepath.Glob(p.user.path(".local/state/fencepost/claims/*"))
	if err != nil || len(states) < 2 {
		t.Fatalf("the states %v, %v", states, err)
	}
	for _, path := range states {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestKilledHook: the next call of a session has the claim, or the position, of a killed one.
func TestKilledHook(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	a, b := p.agent("a", 0, time.Minute), p.agent("b", 0, time.Minute)
	a.asks("x.go", 0)
	b.asks("y.go", 0)
	waits := b.in(b.tree).command("claim", "--session", "b", "--wait", "1m", "x.go").start()
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(p.in(a.tree).command("claims", "--all").expect(0), "1 waiting")
	})
	_ = waits.Process.Kill()
	waits.code()
	a.stops()
	if reason := b.asks("x.go", 10*time.Second); reason != "" {
		t.Error(reason)
	}
}

// TestGitHooks: a commit of what another session claimed is refused, and a push of its branch.
func TestGitHooks(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	tree := p.in(p.trees[0])
	other := p.agent("other", 0, time.Minute)
	tree.command("hook", "install", "git", "--yes").expect(0)
	for _, file := range []string{"mine.go", "theirs.go"} {
		if err := os.WriteFile(tree.path(file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if reason := other.asks("theirs.go", 0); reason != "" {
		t.Fatal(reason)
	}
	tree.program("git", "add", "mine.go", "theirs.go").expect(0)
	commit := tree.program("git", "commit", "-q", "-m", "both")
	commit.expect(1)
	if text := commit.stderr.String(); !strings.Contains(text, `theirs.go is claimed by "other@`) ||
		strings.Contains(text, "mine.go is") {
		t.Errorf("the commit says %s", text)
	}
	other.stops()
	tree.program("git", "commit", "-q", "-m", "both").expect(0)
	push := map[string]any{"command": "git push origin main"}
	if reason := other.send("PreToolUse", "Bash", push, 0); reason != "" {
		t.Fatal(reason)
	}
	refused := tree.program("git", "push", "-q", "origin", "main")
	refused.expect(1)
	if text := refused.stderr.String(); !strings.Contains(text, `branch main is claimed by "other@`) {
		t.Errorf("the push says %s", text)
	}
	other.send("PostToolUse", "Bash", push, 0)
	tree.program("git", "push", "-q", "origin", "main").expect(0)
	tree.command("hook", "install", "git", "--yes", "--remove").expect(0)
	if _, err := os.Stat(tree.path(".git/hooks/pre-commit")); err == nil {
		t.Error("the hook is still there")
	}
}

// TestWorkTreeCommands: git changes no work tree in which another session has claims, but the
// session's own.
func TestWorkTreeCommands(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(2)
	a, b := p.agent("a", 0, time.Minute), p.agent("b", 0, time.Minute)
	a.asks("x.go", 0)
	stash := map[string]any{"command": "cd . && git stash"}
	if reason := b.send("PreToolUse", "Bash", stash, 0); !strings.Contains(reason, "work tree") {
		t.Errorf("in the same tree: %q", reason)
	}
	elsewhere := p.agent("b", 1, time.Minute)
	for _, agent := range []*agent{a, elsewhere} {
		if reason := agent.send("PreToolUse", "Bash", stash, 0); reason != "" {
			t.Errorf("%s: %s", agent.name, reason)
		}
	}
	a.send("PostToolUse", "Bash", stash, 0)
	if reason := b.send("PreToolUse", "Bash", stash, 0); !strings.Contains(reason, "work tree") {
		t.Errorf("after a command of a, which has x.go: %q", reason)
	}
	a.stops()
	if reason := b.send("PreToolUse", "Bash", stash, 0); reason != "" {
		t.Errorf("after the turn of a: %s", reason)
	}
}

// TestOffline: without a server, edits of what another session of the machine claimed are refused,
// and all others pass with a warning.
func TestOffline(t *testing.T) {
	t.Parallel()
	p := newUser(t).project(1)
	p.agent("a", 0, time.Minute).asks("x.go", 0)
	p.env = append(p.env, "FENCEPOST_URL=http://127.0.0.1:1")
	for _, c := range []struct{ file, offline, want string }{
		{"x.go", "", `"deny"`},
		{"y.go", "", "systemMessage"},
		{"x.go", "allow", "systemMessage"},
		{"y.go", "deny", `"deny"`},
	} {
		hook := p.in(p.trees[0]).command("hook", "claude", "--offline", c.offline)
		hook.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"b","cwd":%q,`+
			`"hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":%q}}`,
			p.trees[0], c.file))
		if got := hook.expect(0); !strings.Contains(got, c.want) {
			t.Errorf("%s offline %q: %s", c.file, c.offline, got)
		}
	}
}
