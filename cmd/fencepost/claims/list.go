package claims

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/client"
)

// Seen is a claim as people see it.
type Seen struct {
	Path    string    `json:"path"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
	Read    bool      `json:"read,omitempty"`
	Waiting int       `json:"waiting,omitempty"`
	fence   uint64
}

// Own lists the claims of the session, as far as it knows.
func (s *Session) Own() []Seen {
	all := []Seen{}
	for _, c := range s.load().Claims {
		for _, p := range c.Places {
			if c.Entry != "" {
				all = append(all, Seen{Path: p.String(), Holder: c.Holder, Since: c.Since, Read: c.Read})
			}
		}
	}
	return byPath(all)
}

// All lists the claims of all sessions on files of the repository that a folder is in.
func (s *Session) All(ctx context.Context, folder string) ([]Seen, error) {
	places, err := s.Places(folder)
	if err != nil {
		return nil, err
	}
	top, all := Place{Repo: places[0].Repo, Path: root}.Name(), []Seen{}
	above := map[string]bool{} // what an entry has only because of a path below
	for lock, err := range s.config.Client.List(ctx, top, "") {
		if err != nil {
			return nil, err
		}
		below, isHere := strings.CutPrefix(lock.Name+":", top+":")
		if !isHere {
			continue
		}
		file := root
		for step := range strings.SplitSeq(below, ":") {
			file = path.Join(file, unescape(step))
		}
		for _, h := range lock.Holders {
			for at := file; at != root; {
				at = path.Dir(at)
				above[fmt.Sprint(h.Fence, at)] = true
			}
			since, _ := h.Since.Time()
			all = append(all, Seen{
				file, h.Holder, since, h.Mode == client.Shared, lock.Waiting, h.Fence,
			})
		}
	}
	all = slices.DeleteFunc(all, func(s Seen) bool { return above[fmt.Sprint(s.fence, s.Path)] })
	return byPath(all), nil
}

func byPath(all []Seen) []Seen {
	slices.SortStableFunc(all, func(a, b Seen) int { return strings.Compare(a.Path, b.Path) })
	return all
}
