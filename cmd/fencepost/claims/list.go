package claims

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// Seen is a claim of any session, as the server lists it.
type Seen struct {
	Repo    string    `json:"repository"`
	Path    string    `json:"path"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
	Fence   uint64    `json:"fence"`
	Read    bool      `json:"read,omitempty"`
	Waiting int       `json:"waiting,omitempty"`
}

// All lists the claims of all sessions on files of a repository, or of all repositories.
func All(ctx context.Context, to *client.Client, repo string) ([]Seen, error) {
	prefix := "files:"
	if repo != "" {
		prefix = name("files", []string{repo})
	}
	above := map[string]bool{} // locks that an entry has on folders above what it claims
	var all []Seen
	var names []string
	for lock, err := range to.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		if repo != "" && lock.Name != prefix && !strings.HasPrefix(lock.Name, prefix+":") {
			continue
		}
		for _, h := range lock.Holders {
			for at := lock.Name; strings.Count(at, ":") > 1; {
				at = at[:strings.LastIndexByte(at, ':')]
				above[fmt.Sprint(at, h.Fence, h.Holder)] = true
			}
			all, names = append(all, seen(lock, h)), append(names, lock.Name)
		}
	}
	kept := all[:0]
	for i, s := range all {
		if !above[fmt.Sprint(names[i], s.Fence, s.Holder)] {
			kept = append(kept, s)
		}
	}
	slices.SortStableFunc(kept, func(a, b Seen) int {
		return cmp.Or(strings.Compare(a.Repo, b.Repo), strings.Compare(a.Path, b.Path))
	})
	return kept, nil
}

func seen(lock api.LockSummary, h api.Holder) Seen {
	elements := strings.Split(lock.Name, ":")
	s := Seen{
		Repo: unescape(elements[1]), Path: root, Holder: h.Holder, Fence: h.Fence,
		Read: h.Mode == client.Shared, Waiting: lock.Waiting,
	}
	s.Since, _ = h.Since.Time()
	if len(elements) > 2 {
		steps := make([]string, 0, len(elements))
		for _, element := range elements[2:] {
			steps = append(steps, unescape(element))
		}
		s.Path = strings.Join(steps, "/")
	}
	return s
}
