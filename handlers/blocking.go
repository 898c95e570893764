package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

// maxTrees is how many trees an answer has at most.
const maxTrees = 100

// getBlocking shows the trees of holders and their waiters.
//
// @Summary     See which holders block which waiters
// @Description Returns one tree for each holder that blocks waiters, those that hang first, then those that cost the most waiting time.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Trees" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.AdminBlocking
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/blocking [get]
func getBlocking(q *query) maker {
	s, limit := q.sight(), q.page()
	return func() (any, error) {
		b, err := q.r.endpoints.Console.Blocking(s, min(limit, maxTrees))
		if err != nil {
			return nil, err
		}
		return q.r.endpoints.blockingOf(b, maxPageBytes), nil
	}
}

// blockingOf describes trees, as many as fit into so many bytes.
func (a *endpoints) blockingOf(b *service.Blocking, left int) *api.AdminBlocking {
	out := &api.AdminBlocking{
		Seen: a.seen(b.Revision, b.Now), Trees: []api.BlockingTree{}, Heads: b.Heads, Waiting: b.Waiting,
		BlamedSeconds: api.SecondsOf(b.Blamed), Truncated: b.Cut || b.Heads > len(b.Trees),
	}
	for _, t := range b.Trees {
		heads := fit(t.Heads, &left, func(h blocking.Head) int { return rowBytes + len(h.Lock) })
		waits := fit(t.Waits, &left, func(w blocking.Wait) int {
			return rowBytes + len(w.Lock) + entryBytes(w.Entry, false)
		})
		out.Truncated = out.Truncated || len(heads) < len(t.Heads) || len(waits) < t.Waiting
		if len(heads) == 0 {
			break
		}
		left -= rowBytes + textBytes(t.Holder)
		out.Trees = append(out.Trees, treeOf(t, heads, waits))
	}
	return out
}

func treeOf(t *blocking.Tree, heads []blocking.Head, waits []blocking.Wait) api.BlockingTree {
	out := api.BlockingTree{
		Tenant: t.Tenant, Holder: t.Holder, Named: t.Named, Cycle: t.Cycle, Heads: []api.BlockingHead{},
		Waits:   []api.BlockedWait{},
		Waiting: t.Waiting, Depth: t.Depth, BlamedSeconds: api.SecondsOf(t.Blamed),
	}
	for _, h := range heads {
		out.Heads = append(out.Heads, api.BlockingHead{
			Name: h.Lock, ID: string(h.Entry.ID), Fence: h.Entry.Number, State: heldOr(h.Holds, "reserved"),
			Since: api.InstantOf(h.Since), Sharing: h.Front, Waiting: h.Waiting,
			Set: setSize(h.Entry), Hangs: h.Hangs, UsualHoldSeconds: usualHold(h.Usual),
		})
	}
	for _, w := range waits {
		one := api.BlockedWait{
			ID: string(w.Entry.ID), Holder: w.Entry.Holder, Name: w.Lock, Position: w.Position,
			Number: w.Entry.Number, Depth: w.Depth, Behind: string(w.Behind.ID),
			EnqueuedAt: api.InstantOf(w.Entry.EnqueuedAt), BlamedSince: api.InstantOf(w.Since),
		}
		if w.Under != nil {
			one.Under = string(w.Under.ID)
		}
		out.Waits = append(out.Waits, one)
	}
	return out
}

func heldOr(holds bool, otherwise string) string {
	if holds {
		return "held"
	}
	return otherwise
}

// getHoldings tells what a holder holds and waits for.
//
// @Summary     See what a holder holds and waits for
// @Description Returns up to 200 entries of a holder, with the ids and fences that a revocation needs.
// @Param       tenant query string false "Tenant of the holder; required with the scope `admin`"
// @Param       holder query string true  "Holder, as entries show it"
// @Param       limit  query int    false "Entries" minimum(1) maximum(200) default(200)
// @Success     200 {object} api.AdminHoldings
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/holders [get]
func getHoldings(q *query) maker {
	s, holder := q.sight(), q.r.Query("holder")
	q.invalid("holder", lock.CheckHolder(holder))
	if s.Tenant == "" {
		q.invalid("tenant", "must be sent: holders are of a tenant")
	}
	limit := q.limit(service.MaxHolderEntries, service.MaxHolderEntries)
	a := q.r.endpoints
	return func() (any, error) {
		h, err := a.Console.Holdings(s, holder, limit)
		if err != nil {
			return nil, err
		}
		out := &api.AdminHoldings{
			Seen: a.seen(h.Revision, h.Now), Tenant: s.Tenant, Holder: holder,
			Entries: []api.AdminEntry{}, Holding: h.Holding, Waiting: h.Waiting,
		}
		room := maxPageBytes
		entries := fit(h.Entries, &room, entryPlacesBytes)
		out.Truncated = h.More || len(entries) < len(h.Entries)
		for _, one := range entries {
			out.Entries = append(out.Entries, adminEntryOf(one))
		}
		return out, nil
	}
}

func entryPlacesBytes(s view.EntryPlaces) int {
	size := rowBytes
	for _, at := range s.At {
		size += len(at.Claim.Name) + 100
	}
	return size
}

func adminEntryOf(s view.EntryPlaces) api.AdminEntry {
	e := s.Entry
	out := api.AdminEntry{
		ID: string(e.ID), Fence: e.Number, State: heldOr(s.Holds, "waiting"),
		EnqueuedAt: api.InstantOf(e.EnqueuedAt), TTLSeconds: api.SecondsOf(e.TTL), Set: setSize(e),
		Any: suffice(e), Async: e.Async, Named: e.Named, Locks: []api.AdminEntryLock{},
	}
	if s.Holds {
		out.Since = new(api.InstantOf(s.Since))
	}
	for _, at := range s.At {
		one := api.AdminEntryLock{
			Name: at.Claim.Name, Mode: string(at.Claim.Mode), State: heldOr(s.Holds, "waiting"),
			Position: at.Position,
		}
		if !s.Holds && at.InFront {
			one.State = "reserved"
		}
		out.Locks = append(out.Locks, one)
	}
	return out
}
