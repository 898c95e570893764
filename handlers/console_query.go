package handlers

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
)

// maxSearch is how long the text may be that is searched for, in bytes, and maxSearchStars how
// many stars it may have: it is held against the name of each lock.
const (
	maxSearch      = 200
	maxSearchStars = 8
)

// listQuery reads which locks are asked for.
func (r *request) listQuery() (q lists.Query, err error) {
	q.State, q.Holder = r.Query("state"), r.Query("holder")
	if _, sent := r.GetQuery("state"); sent && q.State != "held" && q.State != "contended" {
		return q, lock.Invalid("state", "must be held or contended")
	}
	if wrong := lock.CheckHolder(q.Holder); q.Holder != "" && wrong != "" {
		return q, lock.Invalid("holder", "%s", wrong)
	}
	if q.Sight, err = r.sight(); err != nil {
		return q, err
	}
	if q.Match, err = r.search(); err != nil {
		return q, err
	}
	if q.Limit, err = r.limitParam(); err != nil {
		return q, err
	}
	return q, r.sorted(&q)
}

// search reads what names have to be like; nil is anything.
func (r *request) search() (func(name string) bool, error) {
	text := r.Query("search")
	if text == "" {
		return nil, nil //nolint:nilnil // all names
	}
	p, err := auth.ParseNamePattern(text)
	switch {
	case err != nil || len(text) > maxSearch:
		return nil, lock.Invalid("search", "must be up to %d characters of lock names, or stars", maxSearch)
	case strings.Count(text, "*") > maxSearchStars:
		return nil, lock.Invalid("search", "must have at most %d stars", maxSearchStars)
	case strings.Contains(text, "*"):
		r.sought = []auth.Pattern{p}
		return p.Match, nil
	}
	if p, err = auth.ParsePattern("*" + text + "*"); err != nil {
		return nil, err
	}
	r.sought = []auth.Pattern{p}
	lower := strings.ToLower(text)
	return func(name string) bool { return strings.Contains(strings.ToLower(name), lower) }, nil
}

// sorted reads the order, and where in it the page begins.
func (r *request) sorted(q *lists.Query) error {
	by := r.DefaultQuery("sort", string(lists.ByName))
	name, down := strings.CutPrefix(by, "-")
	if q.Sort, q.Down = lists.Sort(name), down; !slices.Contains(lists.Sorts(), q.Sort) {
		return lock.Invalid("sort", "must be name, waiters, oldest_wait, held_for or utilization, with a minus for the largest first")
	}
	text, sent := r.GetQuery("cursor")
	if !sent {
		return nil
	}
	after, ok := decodeListCursor(text, by)
	if !ok {
		return lock.Invalid("cursor", "is not a next_cursor of ours for this order")
	}
	q.After = after
	return nil
}

// A cursor of a list has the order, the number by which the last lock stands in it, and
// that lock.
func encodeListCursor(c *lists.Cursor, q lists.Query) string {
	if c == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(orderOf(q) + "|" + strconv.FormatInt(c.Key, 10) + "|" + c.Tenant + "|" + c.Name))
}

func orderOf(q lists.Query) string {
	if q.Down {
		return "-" + string(q.Sort)
	}
	return string(q.Sort)
}

func decodeListCursor(text, order string) (*lists.Cursor, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	parts := strings.Split(string(raw), "|")
	if err != nil || len(parts) != 4 || parts[0] != order || !lock.ValidTenant(parts[2]) || !lock.ValidName(parts[3]) {
		return nil, false
	}
	key, err := strconv.ParseInt(parts[1], 10, 64)
	return &lists.Cursor{Key: key, Ref: lock.Ref{Tenant: parts[2], Name: parts[3]}}, err == nil
}
