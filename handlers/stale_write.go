package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// reportStaleWrite takes the report of a resource that rejected a write.
//
// @Summary     Report a stale write
// @Description Reports that a resource rejected a write because it knew a greater fence. Operators see the newest 100 reports of a tenant.
// @Security    bearer[locks:write]
// @Param       name path string         true "Lock name"
// @Param       body body api.StaleWrite true "What was rejected"
// @Success     204 "Reported"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /locks/{name}/stale-writes [post]
func reportStaleWrite(r *request, body *api.StaleWrite) (reply, error) {
	w := lock.StaleWrite{
		Presented: uint64(body.FencePresented), Known: uint64(body.FenceKnown), Resource: body.Resource,
	}
	of := lock.Ref{Tenant: r.tenant(), Name: r.name}
	return noContent(), r.endpoints.Locks.ReportStaleWrite(r.context(), of, w)
}

func staleWritesOf(all []service.StaleWrite) (out []api.ReportedStaleWrite) {
	for _, w := range all {
		one := api.ReportedStaleWrite{
			At: api.InstantOf(w.At), FencePresented: w.Presented, FenceKnown: w.Known, Resource: w.Resource,
			Holder: w.Holder, Ended: string(w.Ended),
		}
		if w.Ended != "" {
			one.LateSeconds = new(api.SecondsOf(w.Late))
		}
		if ttl := w.EnoughTTL(); ttl > 0 {
			one.EnoughTTLSeconds = new(api.SecondsOf(ttl))
		}
		out = append(out, one)
	}
	return out
}
