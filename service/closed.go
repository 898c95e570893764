package service

import (
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/service/view"
)

// markClosed says which locks are closed, of the lines that are shown: patterns are compared with
// the names of these, and not of all locks in use.
func (c *Console) markClosed(lines []board.Line) {
	standing := map[string][]*lock.Closing{}
	for i := range lines {
		l := &lines[i]
		all, known := standing[l.Tenant]
		if !known {
			all = c.Service.view.Closings(l.Tenant)
			standing[l.Tenant] = all
		}
		l.Closing = longest(all, l.Name)
	}
}

// longest returns what closes a lock for longest, nil if nothing does.
func longest(all []*lock.Closing, name string) (found *lock.Closing) {
	for _, c := range all {
		if c.Locks.Match(name) && (found == nil || c.Until.After(found.Until)) {
			found = c
		}
	}
	return found
}

// closedBy returns of those of the locks that are closed the entry of the closure that lasts longest.
func (c *Console) closedBy(refs []lock.Ref) map[lock.Ref]*lock.Entry {
	standing, closed := map[string][]view.Closing{}, map[lock.Ref]*lock.Entry{}
	for _, r := range refs {
		all, known := standing[r.Tenant]
		if !known {
			all = c.Service.view.Closures(r.Tenant)
			standing[r.Tenant] = all
		}
		for _, one := range all {
			by := closed[r]
			if one.Entry.Closing.Locks.Match(r.Name) && (by == nil || one.Entry.Closing.Until.After(by.Closing.Until)) {
				closed[r] = one.Entry
			}
		}
	}
	return closed
}
