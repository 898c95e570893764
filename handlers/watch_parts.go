package handlers

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/fencepost/fencepost/api"
)

// parts are what an answer is made of: rows by key, and the rest. They do not change.
type parts struct {
	seen  api.Seen
	order []string
	rows  map[string][]byte
	page  []byte // the answer without its rows, and without what [api.Seen] has
}

// row is a part of an answer that can change by itself.
type row struct {
	key   string
	value any
}

// split returns the parts of an answer.
func (r *rendering) split() *parts {
	r.once.Do(func() {
		seen, rows, rest := rowsOf(r.value)
		p := &parts{seen: seen, rows: make(map[string][]byte, len(rows)), page: encoded(rest)}
		for _, one := range rows {
			p.order = append(p.order, one.key)
			p.rows[one.key] = encoded(one.value)
		}
		r.parts = p
	})
	return r.parts
}

func encoded(value any) []byte {
	var text bytes.Buffer
	if err := api.Encode(&text, value); err != nil {
		return []byte("null") // nothing in answers can fail to be JSON
	}
	return text.Bytes()
}

// rowsOf takes an answer apart. The rest has neither its rows, nor what [api.Seen] has.
func rowsOf(answer any) (seen api.Seen, rows []row, rest map[string]json.RawMessage) {
	without := ""
	switch v := answer.(type) {
	case *api.AdminOverview:
		seen = v.Seen
	case *api.AdminHoldings:
		seen = v.Seen
	case *api.AdminBlocking:
		seen = v.Seen
	case *api.AdminSeries:
		seen = v.Seen
	case *api.AdminTenantPage:
		page := *v
		seen, without, answer, page.Tenants = v.Seen, "tenants", &page, nil
		for _, one := range v.Tenants {
			rows = append(rows, row{one.Tenant, one})
		}
	case *api.AdminHeatMap:
		seen = v.Seen
	case *api.AdminLockPage:
		page := *v
		seen, without, answer, page.Locks = v.Seen, "locks", &page, nil
		for _, l := range v.Locks {
			rows = append(rows, row{l.Tenant + "/" + l.Name, l})
		}
	case *api.AdminLockView:
		page := *v
		seen, without, answer, page.Waiters = v.Seen, "waiters", &page, nil
		for _, e := range v.Waiters {
			rows = append(rows, row{e.ID, e})
		}
	}
	_ = json.Unmarshal(encoded(answer), &rest) // it is an object
	for _, name := range []string{"revision", "server_now", "replica", "store_lost_since", without} {
		delete(rest, name)
	}
	return seen, rows, rest
}

// snapshot tells everything.
func (w *watcher) snapshot(r *rendering) {
	w.message("snapshot", r.split())
	w.write([]byte(`,"order":`))
	w.write(encoded(keys(r.split())))
	w.write([]byte(`,"answer":`))
	w.write(r.text)
	w.write([]byte("}\n\n"))
	w.flush()
}

func keys(p *parts) []string {
	if p.order == nil {
		return []string{}
	}
	return p.order
}

// message begins a message. It is written piece by piece, as there may be much of it.
func (w *watcher) message(kind string, p *parts) {
	seen := encoded(p.seen)
	w.write([]byte("id: " + strconv.FormatUint(p.seen.Revision, 10) + "\nevent: " + kind + "\ndata: "))
	w.write(seen[:len(seen)-1]) // more members follow
}

// since returns what is other than what was told: the keys of rows that are, and whether the
// order is, and the rest. A row that is gone is in the order alone.
func (p *parts) since(told *parts) (changed []string, order, page bool) {
	for _, key := range p.order {
		if !bytes.Equal(p.rows[key], told.rows[key]) {
			changed = append(changed, key)
		}
	}
	return changed, !slices.Equal(p.order, told.order), !bytes.Equal(p.page, told.page)
}

// delta tells what is other than what was told, if anything is.
func (w *watcher) delta(now *parts) {
	changed, order, page := now.since(w.told)
	sight := now.lostSince() != w.told.lostSince()
	if len(changed) == 0 && !order && !page && !sight {
		return
	}
	w.message("delta", now)
	w.changes(now, changed)
	if order {
		w.write([]byte(`,"order":`))
		w.write(encoded(keys(now)))
	}
	if page {
		w.write([]byte(`,"page":`))
		w.write(now.page)
	}
	w.write([]byte("}\n\n"))
	w.flush()
}

// lostSince is since when the replica has not seen the store, "" if it does: it is told when nothing
// else can change any more.
func (p *parts) lostSince() api.Instant {
	if p.seen.StoreLostSince == nil {
		return ""
	}
	return *p.seen.StoreLostSince
}

func (w *watcher) changes(now *parts, changed []string) {
	if len(changed) == 0 {
		return
	}
	sep := `,"rows":{`
	for _, key := range changed {
		w.write([]byte(sep))
		w.write(encoded(key))
		w.write([]byte(":"))
		w.write(now.rows[key])
		sep = ","
	}
	w.write([]byte("}"))
}
