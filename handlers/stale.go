package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
)

// reportStaleWrite tells those who follow a lock that a resource refused a write.
//
// @Summary     Report a stale write
// @Description By a resource that refused a write, because it had seen a greater fence of the lock: somebody wrote who had lost it. Those who follow the lock are told lock.stale_write. Equal reports within a minute are one; 60 in a minute are taken up of a tenant.
// @Security    bearer[locks:write]
// @Param       name path string         true "Lock name"
// @Param       body body api.StaleWrite true "What was refused"
// @Success     204 "Reported"
// @Failure     400 {object} api.Problem "invalid_request, invalid_name"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /locks/{name}/stale-writes [post]
func reportStaleWrite(r *request, body *api.StaleWrite) (reply, error) {
	w := lock.StaleWrite{
		Presented: uint64(body.FencePresented), Known: uint64(body.FenceKnown), Resource: body.Resource,
	}
	of := lock.Ref{Tenant: r.tenant(), Name: r.name}
	return noContent(), r.endpoints.Locks.ReportStaleWrite(r.context(), of, w)
}
