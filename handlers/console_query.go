package handlers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
)

// maxSearch is how long the text may be that is searched for, in bytes.
const maxSearch = 200

// lockQuery reads which locks are listed.
func (q *query) lockQuery() (of lists.Query) {
	of.State, of.Holder = q.state(), q.Query("holder")
	if of.Holder != "" {
		q.invalid("holder", lock.CheckHolder(of.Holder))
	}
	of.Sight, of.Match, of.Limit = q.sight(), q.search(), q.page()
	order := q.DefaultQuery("sort", string(lists.ByName))
	name, down := strings.CutPrefix(order, "-")
	if of.Sort, of.Down = lists.Sort(name), down; !slices.Contains(lists.Sorts(), of.Sort) {
		q.invalid("sort", "must be name, waiters, oldest_wait, held_for or utilization, with a minus for the largest first")
	}
	if place := q.cursor(order, isWhole, lock.ValidTenant, lock.ValidName); place != nil {
		key, _ := strconv.ParseInt(place[0], 10, 64)
		of.After = &lists.Cursor{Key: key, Ref: lock.Ref{Tenant: place[1], Name: place[2]}}
	}
	return of
}

func isWhole(part string) bool {
	_, err := strconv.ParseInt(part, 10, 64)
	return err == nil
}

// search reads what the listed names are like; nil is all names.
func (q *query) search() func(name string) bool {
	text := q.Query("search")
	if text == "" {
		return nil
	}
	p, err := auth.ParseNamePattern(text)
	switch {
	case err != nil || len(text) > maxSearch:
		q.reject(lock.Invalid("search", "must be up to %d characters of lock names, with at most one star", maxSearch))
		return nil
	case strings.Contains(text, "*"):
		return p.Match
	}
	lower := strings.ToLower(text)
	return func(name string) bool { return strings.Contains(strings.ToLower(name), lower) }
}

// listCursor has the order, the key of the last lock in it, and that lock.
func listCursor(c *lists.Cursor, q lists.Query) string {
	if c == nil {
		return ""
	}
	return cursorOf(orderOf(q), strconv.FormatInt(c.Key, 10), c.Tenant, c.Name)
}

func orderOf(q lists.Query) string {
	if q.Down {
		return "-" + string(q.Sort)
	}
	return string(q.Sort)
}
