package storetest

import (
	"strings"

	"github.com/fencepost/fencepost/lock"
)

func tenantCases() []testCase {
	return []testCase{
		{name: "tenants/names that resemble each other are apart", run: tenantsApart},
		{name: "tenants/one id in two tenants", run: tenantsOneID},
	}
}

// tenantsApart enqueues one entry for each pair of a tenant and a lock, whose
// names are prefixes of each other or use what a store might separate names by.
func tenantsApart(t *trial) {
	a := t.follow(t.A)
	tenants := []string{"a", "a-", "a-b", "a0", "aa", "0", strings.Repeat("a", lock.MaxTenantLength)}
	names := []string{
		"b", "B", "b-", "b.", "b_", "b:", "b@", "b=", "b+", "b:c", "b0", "bb", "0", "b-b",
		strings.Repeat("b", lock.MaxNameLength),
	}
	placed := map[lock.Ref]*lock.Entry{}
	for _, tenant := range tenants {
		of := make([]*lock.Entry, len(names))
		together(len(names), func(i int) {
			var err error
			if of[i], _, err = t.client(i).Enqueue(t.ctx, draft(tenant, names[i])); err != nil {
				t.Errorf("Enqueue(%s/%s): %v", tenant, names[i], err)
			}
		})
		for i, e := range of {
			placed[lock.Ref{Tenant: tenant, Name: names[i]}] = e
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	gone := lock.Ref{Tenant: "a", Name: "b"}
	t.remove(t.A, placed[gone], lock.Revoked)
	t.settle(a)
	for r, e := range placed {
		want := []*lock.Entry{e}
		if r == gone {
			want = nil
		}
		t.wantQueue(t.B, r, want...)
		if diff := diff(want, a.state().entries(r)); diff != "" {
			t.Errorf("%v in the feed (-want +got):\n%s", r, diff)
		}
	}
}

// tenantsOneID has two tenants use the same id: neither may get, keep or lose the
// other's entry by it.
func tenantsOneID(t *trial) {
	mine, theirs := t.draft("a"), draft("other", "a")
	theirs.ID, theirs.Holder = mine.ID, "theirs"
	first, second := t.enqueue(t.A, mine), t.enqueue(t.B, theirs)
	if second.Tenant != "other" || second.Holder != "theirs" || second.Number <= first.Number {
		t.Fatalf("the second tenant's entry is %+v", second)
	}
	t.wantQueue(t.B, t.ref("a"), first)
	t.remove(t.A, second, lock.Released)
	t.wantQueue(t.B, t.ref("a"), first)
	if err := t.B.Renew(t.ctx, first); err != nil {
		t.Errorf("Renew: %v", err)
	}
}
