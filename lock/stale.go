package lock

import (
	"bytes"
	"encoding/json"
)

// StaleWrite is a write that a resource refused, because it knows a greater fence than the
// one that came with it: somebody wrote who had lost the lock.
type StaleWrite struct {
	Presented uint64 `json:"presented"` // the fence that came with the write
	Known     uint64 `json:"known"`     // the greatest that the resource has seen
	Resource  string `json:"resource"`  // what refused it, by the rules of [CheckHolder]
}

// Check returns what is wrong with a report, an [InvalidRequest], or nil.
func (w StaleWrite) Check() error {
	switch {
	case w.Presented == 0 || w.Presented > MaxNumber:
		return Invalid("fence_presented", "must be between 1 and %d", uint64(MaxNumber))
	case w.Known == 0 || w.Known > MaxNumber:
		return Invalid("fence_known", "must be between 1 and %d", uint64(MaxNumber))
	case w.Presented >= w.Known:
		return Invalid("fence_presented", "must be less than fence_known: otherwise the write was not stale")
	}
	if wrong := CheckHolder(w.Resource); wrong != "" {
		return Invalid("resource", "%s", wrong)
	}
	return nil
}

// NoticeOfStaleWrite returns the notice of a report about a lock, under an id that those share
// which are to be one.
func NoticeOfStaleWrite(r Ref, id string, w StaleWrite) *Notice {
	return &Notice{ID: id, Tenant: r.Tenant, Kind: EventStaleWrite, Locks: []string{r.Name}, Text: compact(w)}
}

// staleWrite returns what a notice of [NoticeOfStaleWrite] says; nil if it is none that can be.
func (n *Notice) staleWrite() *StaleWrite {
	var w StaleWrite
	if n.Kind != EventStaleWrite || json.Unmarshal(n.Text, &w) != nil || w.Check() != nil {
		return nil
	}
	return &w
}

// compact writes JSON as short as it can be: nothing is escaped for HTML.
func compact(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of texts, numbers and instants
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// EventOfNotice returns what happened to the locks of a notice that belongs to no entry; ok is
// false if it says nothing that is known. The entry of such an event has a tenant and the
// locks, and nothing else.
func EventOfNotice(n *Notice) (what Event, ok bool) {
	what = Event{Kind: n.Kind, Entry: &Entry{Tenant: n.Tenant, Set: len(n.Locks) > 1}}
	for _, name := range n.Locks {
		what.Entry.Claims = append(what.Entry.Claims, Claim{Name: name})
	}
	Canonical(what.Entry.Claims)
	what.Stale, what.Contradiction = n.staleWrite(), n.contradiction()
	return what, what.Stale != nil || what.Contradiction != nil
}
