package handlers

import (
	"log/slog"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// maxRevoked is how many entries one request may revoke.
const maxRevoked = 100

// who describes the caller for the audit.
func (r *request) who() audit.Who {
	scope := auth.TenantAdmin
	if r.principal.Allows(auth.Admin) {
		scope = auth.Admin
	}
	return audit.Who{
		Subject: r.principal.Subject, Tenant: r.principal.Tenant, Scope: string(scope),
		Address: textOfAddress(r.address()), Peer: textOfAddress(addressOf(r.Request.RemoteAddr)),
		RequestID: r.id, ServerRequestID: r.ownID(),
	}
}

// ownID returns an id that the client cannot choose, and puts it into the line of the request.
func (r *request) ownID() string {
	if r.serverID == "" {
		r.serverID = acceptRequestID("")
		r.note(slog.String("server_request_id", r.serverID))
	}
	return r.serverID
}

// mayUse is nil if the bearer token may use all names.
func (r *request) mayUse() func(string) bool {
	if r.principal.Locks == nil {
		return nil
	}
	return r.principal.MayUse
}

// revokeEntry ends an entry of one lock.
//
// @Summary     Revoke an entry
// @Description Ends exactly the entry that the operator saw, whether it holds or waits. Its client gets 410 with the reason `revoked`.
// @Param       tenant path     string         true "Tenant of the lock"
// @Param       name   path     string         true "Lock name"
// @Param       id     path     string         true "Entry id"
// @Param       body   body     api.RevokeBody true "Which entry, and why"
// @Success     200    {object} api.Revoked
// @Failure     400    {object} api.Problem "invalid_request, invalid_name"
// @Failure     404    {object} api.Problem "not_found"
// @Failure     409    {object} api.Problem "changed"
// @Failure     410    {object} api.Problem "lock_lost"
// @Failure     503    {object} api.Problem "store_unavailable"
// @Router      /admin/locks/{tenant}/{name}/entries/{id}/revoke [post]
func revokeEntry(r *request, body *api.RevokeBody) (reply, error) {
	return revoke(r, body, service.RevokeRequest{Name: r.name})
}

// revokeSet ends an entry of a lock set.
//
// @Summary     Revoke a lock set
// @Description Ends a set in all its queues at once, as the revocation of an entry does for one lock.
// @Param       tenant path     string         true "Tenant of the locks"
// @Param       id     path     string         true "Entry id"
// @Param       body   body     api.RevokeBody true "Which entry, and why"
// @Success     200    {object} api.Revoked
// @Failure     404    {object} api.Problem "not_found"
// @Failure     409    {object} api.Problem "changed"
// @Failure     410    {object} api.Problem "lock_lost"
// @Failure     503    {object} api.Problem "store_unavailable"
// @Router      /admin/locksets/{tenant}/{id}/revoke [post]
func revokeSet(r *request, body *api.RevokeBody) (reply, error) {
	return revoke(r, body, service.RevokeRequest{Set: true})
}

func revoke(r *request, body *api.RevokeBody, req service.RevokeRequest) (reply, error) {
	req.Tenant, req.ID = r.Param("tenant"), lock.ID(r.Param("id"))
	req.Fence, req.Reason, req.By, req.May = uint64(body.Fence), body.Reason, r.who(), r.mayUse()
	if err := r.operate(req.Tenant); err != nil {
		return reply{}, err
	}
	if req.Fence == 0 {
		return reply{}, lock.Invalid("fence", "must be a whole number from 1 on")
	}
	done, err := r.endpoints.Entries.Revoke(r.context(), req)
	if err != nil {
		return reply{}, err
	}
	return ok(revokedOf(done)), nil
}

// revokeHolder ends what a holder has and waits for.
//
// @Summary     Revoke entries of a holder
// @Description Revokes the named entries of a holder one after the other, and returns the result of each.
// @Param       body body     api.RevokeHolderBody true "Which entries, and why"
// @Success     200  {object} api.RevokedList
// @Router      /admin/holders/revoke [post]
func revokeHolder(r *request, body *api.RevokeHolderBody) (reply, error) {
	all, err := revocationsOf(r, body)
	if err != nil {
		return reply{}, err
	}
	out := r.endpoints.Entries.RevokeAll(r.context(), all)
	list := &api.RevokedList{Entries: []api.RevokeOutcome{}}
	for i, req := range all {
		one := api.RevokeOutcome{ID: string(req.ID), Fence: req.Fence, Result: "not_tried"}
		if i < len(out) {
			describeOutcome(&one, out[i])
		}
		list.Entries = append(list.Entries, one)
	}
	return ok(list), nil
}

// revocationsOf checks what is said of all entries, before one of them is touched.
func revocationsOf(r *request, body *api.RevokeHolderBody) ([]service.RevokeRequest, error) {
	if err := r.operate(body.Tenant); err != nil {
		return nil, err
	}
	if wrong := lock.CheckHolder(body.Holder); wrong != "" {
		return nil, lock.Invalid("holder", "%s", wrong)
	}
	if wrong := lock.CheckExplanation(body.Reason); wrong != "" {
		return nil, lock.Invalid("reason", "%s", wrong)
	}
	if len(body.Entries) == 0 || len(body.Entries) > maxRevoked {
		return nil, lock.Invalid("entries", "must be 1 to %d entries", maxRevoked)
	}
	all := make([]service.RevokeRequest, len(body.Entries))
	for i, e := range body.Entries {
		if !lock.ValidID(e.ID) || e.Fence == 0 {
			return nil, lock.Invalid("entries", "must have an id and a fence each")
		}
		all[i] = service.RevokeRequest{
			Tenant: body.Tenant, Holder: body.Holder, ID: lock.ID(e.ID), Fence: uint64(e.Fence),
			Reason: body.Reason, By: r.who(), May: r.mayUse(),
		}
	}
	return all, nil
}

func describeOutcome(one *api.RevokeOutcome, out service.RevokeOutcome) {
	if out.Err == nil {
		one.Result, one.AuditID = audit.Revoked, out.Record.ID
		return
	}
	e := typed(out.Err)
	one.Result, one.Reason, one.MayHaveTakenEffect = string(e.Code), string(e.Reason), e.OutcomeUnknown
}

func revokedOf(done *service.Revoked) *api.Revoked {
	o := done.Record.Object
	return &api.Revoked{
		ID: string(o.Entry), Tenant: done.Record.Tenant, Locks: o.Locks, Holder: o.Holder, Fence: o.Fence,
		Held: o.Held, AuditID: done.Record.ID,
	}
}
