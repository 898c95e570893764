package mcp

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/api"
)

const (
	maxBehind = 20 // contended locks that are looked at for those that block the holders
	maxNamed  = 10 // holders, waiters and waits of holders that an answer names

	thisSession = "This session"
)

type whoBlocksInput struct {
	Name string `json:"name"`
}

type blocks struct {
	Text string   `json:"text"`
	Lost []string `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) whoBlocks(ctx context.Context, in whoBlocksInput) (*blocks, error) {
	look, err := s.client.Look(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	text := describe(look, s.holder, s.fence(look.Name))
	if look.Waiting > 0 {
		behind, err := s.behindHolders(ctx, look)
		if err != nil {
			return nil, err
		}
		text = append(text, behind...)
	}
	return &blocks{Text: strings.Join(text, "\n"), Lost: s.lost()}, nil
}

// describe names the holders and waiters of a lock. It quotes the texts of holders, waiters and
// operators, so that an agent can tell them from the sentences of this program. The grant of this
// session is the one with its fence: another holder may have the same name.
func describe(l *api.Lock, self string, fence uint64) []string {
	var text []string
	if len(l.Holders) == 0 {
		text = append(text, l.Name+" is free.")
	}
	for i, h := range l.Holders {
		if i == maxNamed {
			text = append(text, fmt.Sprintf("%d more hold it.", len(l.Holders)-i))
			break
		}
		who := strconv.Quote(h.Holder)
		if h.Fence == fence {
			who = thisSession
		}
		text = append(text, fmt.Sprintf("%s holds %s (%s, fence %d) since %s%s.",
			who, l.Name, h.Mode, h.Fence, h.Since, purpose(h.Metadata)))
	}
	if l.Closed != nil {
		text = append(text, fmt.Sprintf("An operator closed %s: %q", l.Name, l.Closed.Reason))
	}
	for i, w := range l.Waiters {
		if i == maxNamed {
			text = append(text, fmt.Sprintf("%d more wait.", l.Waiting-i))
			break
		}
		text = append(text, fmt.Sprintf("%s waits at position %d for %.0f s%s.",
			called(w.Holder, self), w.Position, float64(w.WaitedSeconds), purpose(w.Metadata)))
	}
	return text
}

// behindHolders says for which other locks the holders of a lock wait.
func (s *session) behindHolders(ctx context.Context, of *api.Lock) ([]string, error) {
	holders := map[string]bool{}
	for _, h := range of.Holders {
		holders[h.Holder] = true
	}
	var text []string
	looked := 0
	for summary, err := range s.client.List(ctx, "", "contended") {
		if err != nil {
			return nil, err
		}
		if summary.Name == of.Name {
			continue
		}
		if looked++; looked > maxBehind {
			text = append(text, "More locks are contended; they were not looked at.")
			break
		}
		other, err := s.client.Look(ctx, summary.Name)
		if err != nil {
			return nil, err
		}
		text = append(text, waitingAmong(other, holders, s.holder)...)
		if len(text) > maxNamed {
			return append(text[:maxNamed], "Holders wait for more locks."), nil
		}
	}
	return text, nil
}

func waitingAmong(l *api.Lock, holders map[string]bool, self string) []string {
	var text []string
	for _, w := range l.Waiters {
		if holders[w.Holder] && len(l.Holders) > 0 {
			text = append(text, fmt.Sprintf("%s itself waits for %s, which %s holds.",
				called(w.Holder, self), l.Name, called(l.Holders[0].Holder, self)))
		}
	}
	return text
}

func called(holder, self string) string {
	if holder == self {
		return thisSession
	}
	return strconv.Quote(holder)
}

func purpose(metadata map[string]string) string {
	if metadata["purpose"] == "" {
		return ""
	}
	return fmt.Sprintf(" for %q", metadata["purpose"])
}
