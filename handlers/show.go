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
	slow  bool // it is dear for what it tells: who watches is told once a second at most
}

// views are what can be watched, by name.
func views() map[string]viewed {
	return map[string]viewed{
		"overview": {[]string{"tenant"}, makeOverview, false},
		"locks":    {[]string{"tenant", "search", "state", "holder", "sort", "limit", "cursor"}, makeLocks, false},
		"lock":     {[]string{"tenant", "name"}, makeWatchedLock, false},
		"series":   {[]string{"tenant"}, makeSeries, false},
		"tenants":  {[]string{"tenant", "limit", "cursor"}, makeTenants, true},
		"heatmap":  {[]string{"tenant", "limit"}, makeHeatMap, false},
		"holders":  {[]string{"tenant", "holder", "limit"}, makeHoldings, false},
		"blocking": {[]string{"tenant", "limit"}, makeBlocking, true},
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

// watchedView reads what is to be watched, and whether that is told seldom.
func (r *request) watchedView() (_ maker, slow bool, _ error) {
	v, known := views()[r.Query("view")]
	if !known {
		return nil, false, lock.Invalid("view", "must be one of the views that the description names")
	}
	if err := checkQuery(r.Request.URL.RawQuery, append(slices.Clone(v.query), "view")); err != nil {
		return nil, false, err
	}
	make, err := v.make(r)
	return make, v.slow, err
}

// makeWatchedLock shows a lock with the first of those that wait.
func makeWatchedLock(r *request) (maker, error) {
	name := r.Query("name")
	if !lock.ValidName(name) {
		return nil, lock.Invalid("name", "must be the name of a lock")
	}
	if !r.principal.MayUse(name) {
		return nil, errOtherNames(name)
	}
	r.name = name
	return r.makeLock(r.Query("tenant"), name, watchedWaiters)
}
