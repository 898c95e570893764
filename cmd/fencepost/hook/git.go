package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/fencepost/fencepost/cmd/fencepost/claims"
)

// Git answers a hook of git: pre-commit claims each staged path, pre-push each pushed branch. Its
// error names what other sessions have. It writes warnings to out.
func (h *Hook) Git(ctx context.Context, event string, in io.Reader, out io.Writer) error {
	s, err := h.Open("")
	if err != nil {
		return err
	}
	var all []claims.Place
	switch event {
	case "pre-commit":
		all, err = staged(s)
	case "pre-push":
		all, err = pushed(s, in)
	default:
		err = fmt.Errorf("the hooks of git are pre-commit and pre-push, not %s", event)
	}
	if err != nil {
		return err
	}
	var refused []error
	for _, p := range all {
		one := claims.Request{Places: []claims.Place{p}, Wait: h.Wait}
		reason, warning := h.finding(s, one.Places, s.Claim(ctx, one))
		if reason != "" {
			refused = append(refused, errors.New(reason))
		}
		if warning != "" {
			fmt.Fprintln(out, warning)
		}
	}
	return errors.Join(refused...)
}

func staged(s *claims.Session) ([]claims.Place, error) {
	// The hook runs at the top of the work tree.
	text, err := exec.Command("git", "diff", "--cached", "--name-only", "--no-renames", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("git diff: %w", err)
	}
	return s.Places(strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })...)
}

// pushed reads the lines that git gives its hook: local ref, object, remote ref, object.
func pushed(s *claims.Session, in io.Reader) (all []claims.Place, err error) {
	text, err := io.ReadAll(io.LimitReader(in, maxInput))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 4 {
			branch, err := s.Branch(".", strings.TrimPrefix(fields[2], "refs/heads/"))
			if err != nil {
				return nil, err
			}
			all = append(all, branch)
		}
	}
	return all, nil
}
