package claims

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/client"
)

const (
	maxName  = 200  // of a lock
	maxLocks = 32   // of a set
	cutMark  = "==" // an escaped name never has two of them in a row
	root     = "."  // path of a repository's own folder
)

// Place is what a session claims: a file or folder, a branch, or a work tree.
type Place struct {
	Repo   string `json:"repo"`
	Path   string `json:"path,omitempty"`   // canonical, from the top of the repository
	Branch string `json:"branch,omitempty"` // of the repository, in place of Path
	Tree   string `json:"tree,omitempty"`   // host and folder of a work tree, in place of both
}

// String names the place for people.
func (p Place) String() string {
	switch {
	case p.Tree != "":
		return "the work tree"
	case p.Branch != "":
		return "branch " + p.Branch
	}
	return p.Path
}

// Name of the place's lock.
func (p Place) Name() string {
	switch {
	case p.Tree != "":
		return name("tree", strings.Split(p.Tree, "/")...)
	case p.Branch != "":
		return name("repo", p.Repo, "branch", p.Branch)
	case p.Path == root:
		return name("files", p.Repo)
	}
	return name("files", append([]string{p.Repo}, strings.Split(p.Path, "/")...)...)
}

// covers reports whether an exclusive claim of p keeps others away from q.
func (p Place) covers(q Place) bool {
	if p == q {
		return true
	}
	return p.Path != "" && q.Path != "" && p.Repo == q.Repo &&
		(p.Path == root || strings.HasPrefix(q.Path, p.Path+"/"))
}

// locks of the place: shared on each folder above, and on the place itself exclusive or shared.
func (p Place) locks(read bool) []client.Claim {
	mode := client.Exclusive
	if read {
		mode = client.Shared
	}
	locks := []client.Claim{{Name: p.Name(), Mode: mode}}
	for above := p; above.Path != "" && above.Path != root; {
		above.Path = path.Dir(above.Path)
		locks = append(locks, client.Claim{Name: above.Name(), Mode: client.Shared})
	}
	return locks
}

// union of the locks of places, each once; exclusive wins.
func union(places []Place, read bool) []client.Claim {
	modes := map[string]string{}
	for _, p := range places {
		for _, l := range p.locks(read) {
			if modes[l.Name] != client.Exclusive {
				modes[l.Name] = l.Mode
			}
		}
	}
	locks := []client.Claim{}
	for name, mode := range modes {
		locks = append(locks, client.Claim{Name: name, Mode: mode})
	}
	slices.SortFunc(locks, func(a, b client.Claim) int { return strings.Compare(a.Name, b.Name) })
	return locks
}

// name joins escaped elements with colons. Of a name that is too long, the end is a hash of all.
func name(kind string, elements ...string) string {
	text := kind
	for _, element := range elements {
		text += ":" + escape(element)
	}
	if len(text) <= maxName {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	end := cutMark + hex.EncodeToString(hash[:16])
	return text[:maxName-len(end)] + end
}

// escape keeps letters, digits and . _ - and writes / of a repository or a branch as +, and each
// other byte as =2E, so that two texts never have one escape.
func escape(text string) string {
	marks := strings.NewReplacer("+", "=20", "~", "=7E", "%2F", "+", "%", "=")
	return marks.Replace(url.QueryEscape(text))
}

// unescape is the text of an escaped element, or the element itself where its end was cut.
func unescape(element string) string {
	text, err := url.QueryUnescape(strings.NewReplacer("+", "%2F", "=", "%").Replace(element))
	if err != nil {
		return element
	}
	return text
}
