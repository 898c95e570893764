package handlers

import (
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// operators are the scopes of which an operation for operators needs one. What a token with
// [auth.TenantAdmin] may see and change is decided by [request.operate]. Where one of them will do, a session of
// the dashboard does too.
func operators() []auth.Scope { return []auth.Scope{auth.Admin, auth.TenantAdmin} }

// operatedTenant returns the tenant that an operator's query names, or the only one that he
// may see; "" stands for all.
func (r *request) operatedTenant() (string, error) {
	tenant, sent := r.GetQuery("tenant")
	if !sent && !r.principal.MayOperate("") {
		return r.principal.Tenant, nil
	}
	if !sent {
		return "", nil
	}
	return tenant, r.operate(tenant)
}

// operate returns why an operator may have nothing to do with a tenant: one that he names in
// the path, the query or the body.
func (r *request) operate(tenant string) error {
	if !lock.ValidTenant(tenant) {
		return lock.Invalid("tenant", "is not a tenant's name")
	}
	if !r.principal.MayOperate(tenant) {
		return lock.Errorf(lock.Forbidden, "the caller is limited to its own tenant")
	}
	return nil
}
