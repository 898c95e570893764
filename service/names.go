package service

import (
	"strings"

	"github.com/google/btree"
)

// names are the locks in use, in byte order, by tenant, so that a page of a list
// costs its own length. It is not safe for concurrent use.
type names struct {
	byTenant map[string]*btree.BTreeG[string]
}

func newNames() names { return names{byTenant: map[string]*btree.BTreeG[string]{}} }

func (n names) add(tenant, name string) {
	t := n.byTenant[tenant]
	if t == nil {
		t = btree.NewOrderedG[string](32)
		n.byTenant[tenant] = t
	}
	t.ReplaceOrInsert(name)
}

func (n names) remove(tenant, name string) {
	t := n.byTenant[tenant]
	if t == nil {
		return
	}
	t.Delete(name)
	if t.Len() == 0 {
		delete(n.byTenant, tenant)
	}
}

// after yields the tenant's names that start with prefix and come after the
// given one, in order.
func (n names) after(tenant, prefix, last string, yield func(string) bool) {
	t := n.byTenant[tenant]
	if t == nil {
		return
	}
	t.AscendGreaterOrEqual(max(prefix, last), func(name string) bool {
		if !strings.HasPrefix(name, prefix) {
			return name < prefix
		}
		return name == last || yield(name)
	})
}
