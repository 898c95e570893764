package handlers

import (
	"maps"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// maker makes an answer whose rows have about so many bytes of room.
type maker func(room int) (any, error)

// viewed is something that operators can look at once, or watch.
type viewed struct {
	query []string // the parameters that it knows
	make  func(*request) (maker, error)
}

// views are what can be watched, by name.
func views() map[string]viewed {
	return map[string]viewed{
		"overview": {[]string{"tenant"}, makeOverview},
		"locks":    {[]string{"tenant", "search", "state", "holder", "sort", "limit", "cursor"}, makeLocks},
		"lock":     {[]string{"tenant", "name"}, makeWatchedLock},
		"series":   {[]string{"tenant"}, makeSeries},
		"tenants":  {[]string{"tenant", "limit", "cursor"}, makeTenants},
		"heatmap":  {[]string{"tenant", "limit"}, makeHeatMap},
		"holders":  {[]string{"tenant", "holder", "limit"}, makeHoldings},
	}
}

// show answers with what a maker makes.
func (r *request) show(parse func(*request) (maker, error)) error {
	make, err := parse(r)
	if err != nil {
		return err
	}
	return r.respondShared(func() (any, error) { return make(maxPageBytes) })
}

// watchQuery returns all parameters that some view knows.
func watchQuery() []string {
	all := map[string]bool{"view": true}
	for _, v := range views() {
		for _, name := range v.query {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// watchedView reads what is to be watched.
func (r *request) watchedView() (maker, error) {
	v, known := views()[r.Query("view")]
	if !known {
		return nil, lock.Invalid("view", "must be one of the views that the description names")
	}
	if err := checkQuery(r.Request.URL.RawQuery, append(slices.Clone(v.query), "view")); err != nil {
		return nil, err
	}
	return v.make(r)
}

// makeWatchedLock shows a lock with the first of those that wait.
func makeWatchedLock(r *request) (maker, error) {
	name := r.Query("name")
	if !lock.ValidName(name) {
		return nil, lock.Invalid("name", "must be the name of a lock")
	}
	if !r.principal.MayUse(name) {
		return nil, lock.Errorf(lock.Forbidden, "the caller is limited to other lock names")
	}
	r.name = name
	return r.makeLock(r.Query("tenant"), name, watchedWaiters)
}
