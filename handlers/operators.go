package handlers

import (
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// operators are the scopes of which an operation for operators needs one. What a token with
// [auth.TenantAdmin] may see and change is decided by [request.operate]. Where one of them will do, a session of
// the dashboard does too.
func operators() []auth.Scope { return []auth.Scope{auth.Admin, auth.TenantAdmin} }

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
