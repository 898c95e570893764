package handlers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// Each secret has a beginning of its own: a lock token, the secret of a webhook,
// and a JSON Web Token, whose header is the base64 of {"…
var (
	secretShape = regexp.MustCompile(
		`fp1_[A-Za-z0-9_-]{8,}|whsec_[A-Za-z0-9+/]{8,}|\beyJ[A-Za-z0-9_-]{8,}`,
	)
	ownNames = regexp.MustCompile(`tenant-[0-9]|orders:`)
)

// secrets are the pieces of all tokens that the tests sent or were sent.
type secrets struct {
	mu     sync.Mutex
	pieces map[string]bool
}

func newSecrets() *secrets { return &secrets{pieces: map[string]bool{}} }

func (s *secrets) add(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for piece := range strings.SplitSeq(strings.TrimPrefix(token, "fp1_"), ".") {
		if len(piece) >= 16 {
			s.pieces[piece] = true
		}
	}
}

// find returns a secret that text shows, or "". All answers and lines go through it: where
// a pattern could match is looked for first, which is much cheaper.
func (s *secrets) find(text []byte) string {
	if bytes.Contains(text, []byte("fp1_")) || bytes.Contains(text, []byte("eyJ")) ||
		bytes.Contains(text, []byte("whsec_")) {
		if found := secretShape.Find(text); found != nil {
			return string(found)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for run := range bytes.FieldsFuncSeq(text, endsSecret) {
		if len(run) < 16 {
			continue
		}
		if piece := string(bytes.TrimPrefix(run, []byte("fp1_"))); s.pieces[piece] {
			return piece
		}
	}
	return ""
}

// endsSecret reports whether no secret has this character.
func endsSecret(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

// journal is the log of all replicas, line by line. It keeps the latest lines.
type journal struct {
	secrets *secrets

	mu    sync.Mutex
	rest  []byte // of a line that is not whole yet
	lines [][]byte
	first error // the first leak
	total int
}

const journalLines = 200_000

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, whole := bytes.Cut(j.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		j.keep(bytes.Clone(line))
		j.rest = rest
	}
}

func (j *journal) keep(line []byte) {
	j.total++
	if found := j.secrets.find(line); found != "" && j.first == nil {
		j.first = fmt.Errorf("the log shows the secret %q: %s", found, line)
	}
	if len(j.lines) == journalLines {
		j.lines = j.lines[journalLines/2:]
	}
	j.lines = append(j.lines, line)
}

// check looks for secrets again, as some became known only after the line.
func (j *journal) check() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.first != nil {
		return j.first
	}
	for _, line := range j.lines {
		if found := j.secrets.find(line); found != "" {
			return fmt.Errorf("the log shows the secret %q: %s", found, line)
		}
	}
	if j.total == 0 {
		return errors.New("nothing was logged: what was checked?")
	}
	return nil
}

// request returns the log line of the request with the id, once it is there.
func (j *journal) request(t testing.TB, id string) map[string]any {
	t.Helper()
	var line map[string]any
	poll.Until(t, "the log has the request "+id, func() bool {
		line = j.search([]byte(`"request_id":"` + id + `"`))
		return line != nil
	})
	return line
}

func (j *journal) search(text []byte) map[string]any {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.lines) - 1; i >= 0; i-- {
		var line map[string]any
		if bytes.Contains(j.lines[i], text) && json.Unmarshal(j.lines[i], &line) == nil {
			return line
		}
	}
	return nil
}

// TestJournal: the net that is to catch leaks has to catch one.
func TestJournal(t *testing.T) {
	t.Parallel()
	s := newSecrets()
	s.add("header-of-16-bytes.payload-of-16-byte.signature-of-16-by")
	s.add("fp1_body-of-a-lock-token-body-of-a")
	leaks := map[string]string{
		"LockToken":      `{"msg":"x","token":"fp1_unknown-but-of-this-shape"}`,
		"WebhookSecret":  `{"msg":"x","s":"whsec_unknown/but+of+this+shape="}`,
		"BearerToken":    `{"msg":"x","header":"Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc"}`,
		"Signature":      `{"msg":"x","why":"bad signature-of-16-by"}`,
		"LockTokensBody": `{"msg":"x","id":"body-of-a-lock-token-body-of-a"}`,
	}
	for name, line := range leaks {
		j := &journal{secrets: s}
		for _, part := range []string{line[:10], line[10:] + "\n"} {
			if _, err := j.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if j.check() == nil {
			t.Errorf("%s is not caught in %s", name, line)
		}
	}
	j := &journal{secrets: s}
	if j.check() == nil {
		t.Error("an empty log passes")
	}
	if _, err := j.Write([]byte(`{"msg":"request","tenant":"a","lock":"body"}` + "\n")); err != nil ||
		j.check() != nil {
		t.Errorf("a harmless line: %v, %v", err, j.check())
	}
}
