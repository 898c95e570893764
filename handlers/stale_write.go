package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// reportStaleWrite takes the report of a resource that rejected a write.
//
// @Summary     Report a stale write
// @Description Reports that a resource rejected a write because it knew a greater fence. Operators see the newest 100 reports of a tenant, with repeats merged and equal shares for its tokens.
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
		Reporter: reporterOf(r.principal),
	}
	of := lock.Ref{Tenant: r.tenant(), Name: r.name}
	return noContent(), r.endpoints.StaleWrites.ReportStaleWrite(r.context(), of, w)
}

// reporterOf returns a short name of the subject and patterns of a bearer token.
func reporterOf(p *auth.Principal) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q", p.Subject, p.Locks))
	return hex.EncodeToString(hash[:8])
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
