// Package hook answers the hooks of coding agents and of git: an edit, a commit or a push of a
// place that another session has claimed is refused.
package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/fencepost/claims"
)

const maxInput = 64 << 20 // bytes; a call that writes a file has its text

// Hook says how to answer.
type Hook struct {
	// Open returns the session with the name that the agent sends, or that of the environment.
	Open func(session string) (*claims.Session, error)
	// Wait is how long to wait for the end of another session's claim.
	Wait time.Duration
	// Offline is what to do if no server answers: allow, deny, or if empty, deny what a session of
	// this machine is known to have claimed.
	Offline string
}

// Answer reads one call of an agent's hook and answers it. An error is for people: the agent
// continues as if there were no hook.
func (h *Hook) Answer(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	a, err := agentOf(name)
	if err != nil {
		return err
	}
	c := new(call)
	if err := json.NewDecoder(io.LimitReader(in, maxInput)).Decode(c); err != nil {
		return fmt.Errorf("the call of %s: %w", name, err)
	}
	s, err := h.Open(c.Session)
	if err != nil {
		return err
	}
	switch a.events[c.Event] {
	case before:
		places, err := h.claim(ctx, s, a, c)
		reason, warning := h.finding(s, places, err)
		return a.answer(out, c.Event, reason, warning)
	case after:
		return endCommands(ctx, s, a, c)
	case begins:
		return tellShells(c.Session)
	case stops:
		_, err = s.Unclaim(ctx)
	case ends:
		err = s.End(ctx)
	}
	return err
}

// claim claims what the call writes. It returns that also with an error.
func (h *Hook) claim(
	ctx context.Context, s *claims.Session, a agent, c *call,
) (all []claims.Place, err error) {
	for _, file := range a.files(c) {
		places, err := s.Places(file)
		if errors.Is(err, claims.ErrNoRepository) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, places...)
		tree, err := s.Tree(file)
		if err != nil {
			return all, err
		}
		if err := s.Claim(ctx, stay(h.Wait, tree)); err != nil {
			return all, err
		}
	}
	commands, err := placesOf(s, a.gitCalls(c))
	if err != nil {
		return all, err
	}
	if all = append(all, commands...); len(all) == 0 {
		return nil, s.Renew(ctx)
	}
	return all, s.Claim(ctx, claims.Request{Places: all, Wait: h.Wait})
}

// stay keeps other sessions' git from changing work trees.
func stay(wait time.Duration, trees ...claims.Place) claims.Request {
	return claims.Request{Places: trees, Read: true, Wait: wait}
}

// placesOf are the work tree, or the branch, of calls of git.
func placesOf(s *claims.Session, calls map[string]bool) ([]claims.Place, error) {
	var all []claims.Place
	for folder, writesFiles := range calls {
		place, err := s.Branch(folder, "")
		if writesFiles {
			place, err = s.Tree(folder)
		}
		switch {
		case errors.Is(err, claims.ErrNoRepository):
		case err != nil:
			return nil, err
		default:
			all = append(all, place)
		}
	}
	return all, nil
}

// endCommands releases what a command of git needed. A session that has claims stays in its work
// tree, so that no other one's git changes it.
func endCommands(ctx context.Context, s *claims.Session, a agent, c *call) error {
	places, err := placesOf(s, a.gitCalls(c))
	if err != nil || len(places) == 0 {
		return err
	}
	if _, err := s.Unclaim(ctx, places...); err != nil {
		return err
	}
	trees := slices.DeleteFunc(places, func(p claims.Place) bool { return p.Tree == "" })
	if len(s.Own()) == 0 || len(trees) == 0 {
		return nil
	}
	err = s.Claim(ctx, stay(0, trees...))
	if taken := new(claims.TakenError); errors.As(err, &taken) {
		return nil // another session's command was waiting
	}
	return err
}

const remedy = ". Do not change it by other means. Do other work first, or try again later; " +
	"fencepost claims --all shows all claims."

// finding says why the call is refused, or what its user should know.
func (h *Hook) finding(
	s *claims.Session, places []claims.Place, err error,
) (reason, warning string) {
	var taken *claims.TakenError
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &taken) && !taken.Changed:
		return err.Error() + remedy, ""
	case !claims.IsOffline(err):
		return err.Error(), ""
	}
	names := []string{}
	for _, p := range places {
		names = append(names, p.String())
	}
	warning = fmt.Sprintf("fencepost: nothing keeps other sessions from %s: %v",
		strings.Join(names, ", "), err)
	by := s.Elsewhere(places)
	switch {
	case h.Offline == "allow" || h.Offline == "" && by == "":
		return "", warning
	case by != "":
		return fmt.Sprintf("no server of Fencepost answers, and %s is claimed by %q", names[0], by), ""
	}
	return "no server of Fencepost answers: " + err.Error(), ""
}

// tellShells gives the session's name to the commands that Claude Code and Codex run from now on.
func tellShells(session string) error {
	path := os.Getenv("CLAUDE_ENV_FILE")
	if path == "" || os.Getenv("FENCEPOST_SESSION") != "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	quoted := "'" + strings.ReplaceAll(session, "'", `'\''`) + "'"
	_, err = fmt.Fprintf(file, "export FENCEPOST_SESSION=%s\n", quoted)
	return errors.Join(err, file.Close())
}
