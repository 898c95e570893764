package store

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// Noticed is the reason that a store's record of a notice carries where a record has to
// carry one. No entry ends for it.
const Noticed lock.Reason = "notice"

// NoticeValue is everything of a notice but what its key says, and its number, in the form
// in which stores keep it. Who does not know notices passes over them, so they raise no
// [Form].
type NoticeValue struct {
	Kind  lock.EventKind  `json:"kind"`
	Locks []string        `json:"locks"`
	Text  json.RawMessage `json:"text,omitempty"`
	Of    lock.ID         `json:"of,omitempty"`
}

// NoticeOf returns the form of n.
func NoticeOf(n *lock.Notice) *NoticeValue {
	return &NoticeValue{Kind: n.Kind, Locks: n.Locks, Text: n.Text, Of: n.Of}
}

// Notice returns the notice with the id that was written at number, or what says that no
// replica can have written it.
func (v *NoticeValue) Notice(tenant, id string, number uint64) (*lock.Notice, error) {
	n := &lock.Notice{ID: id, Tenant: tenant, Kind: v.Kind, Locks: v.Locks, Text: v.Text, Of: v.Of, Number: number}
	if err := n.Check(); err != nil {
		return nil, err
	}
	return n, nil
}

// CheckNotice returns why a notice that belongs to the entry, or to none, cannot be written.
func CheckNotice(n *lock.Notice, of *lock.Entry) error {
	err := n.Check()
	switch {
	case err != nil:
		return err
	case of == nil && n.Of != "", of != nil && (of.ID != n.Of || of.Tenant != n.Tenant):
		return lock.Invalid("of", "must be the entry that it belongs to")
	}
	return nil
}

// Attached are notices by the entries that they belong to.
type Attached map[lock.ID][]*lock.Notice

// Add takes a notice, if it belongs to an entry.
func (a Attached) Add(n *lock.Notice) {
	if n.Of != "" {
		a[n.Of] = append(a[n.Of], n)
	}
}

// Leave forgets the notices of an entry that went, and returns them.
func (a Attached) Leave(id lock.ID) []*lock.Notice {
	gone := a[id]
	delete(a, id)
	return gone
}

// Belonging returns those of the listed notices that belong to one of the listed entries, in
// the order of their numbers, and those whose entry is gone. An id can come again: a notice
// is younger than its entry, and older than any later one with the same id.
func Belonging(notices []*lock.Notice, entries []*lock.Entry) (there, gone []*lock.Notice) {
	if len(notices) == 0 {
		return nil, nil
	}
	numbers := make(map[lock.ID]uint64, len(entries))
	for _, e := range entries {
		numbers[e.ID] = e.Number
	}
	for _, n := range notices {
		if number, ok := numbers[n.Of]; ok && number < n.Number {
			there = append(there, n)
		} else {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(there, func(a, b *lock.Notice) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID)) })
	return there, gone
}
