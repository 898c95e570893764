package handlers

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// Audit is what is on record of operators; [audit.Log] has it.
type Audit interface {
	Page(context.Context, audit.Query) (*audit.Page, error)
}

const (
	jsonLines  = "application/x-ndjson"
	exportPage = 1000 // records of a part

	// How many exports run at once: each reads all records, part by part, at its client's pace.
	maxExports         = 4
	maxExportsOfTenant = 1

	// How many pages are read from the store at once, each of many records.
	maxReads         = 16
	maxReadsOfTenant = 4
)

// listAudit tells what was done.
//
// @Summary     See what operators did, and what became of webhooks
// @Description Returns the audit of the tenants that the token may see, newest first. `Accept: application/x-ndjson` exports all of it, one record per line.
// @Produce     json,application/x-ndjson
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Records on a page" minimum(1) maximum(1000) default(100)
// @Param       cursor query string false "`next_cursor` of the previous page"
// @Param       since  query string false "Only records since this instant" format(date-time)
// @Param       operator query string false "Only operators whose subject contains this text; upper and lower case are the same"
// @Param       action query string false "Only this action" Enums(entry.revoke, set.revoke, locks.close, locks.open, quota.set, quota.reset, webhook.create, webhook.change, webhook.pause, webhook.resume, webhook.delete, webhook.rotate, webhook.test, webhook.redeliver)
// @Param       lock   query string false "Only records that name this lock, or a pattern that matches it"
// @Success     200 {object} api.AuditPage
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     503 {object} api.Problem "store_unavailable, fence_floor_required"
// @Router      /admin/audit [get]
func listAudit(r *request) (reply, error) {
	q, err := auditQuery(r)
	if err != nil {
		return reply{}, err
	}
	if strings.Contains(r.GetHeader("Accept"), jsonLines) {
		return written(), export(r, q)
	}
	page, err := auditRecords(r, q)
	if err != nil {
		return reply{}, err
	}
	left := maxPageBytes
	records := fit(page.Records, &left, recordBytes)
	if n := len(records); n < len(page.Records) {
		page.Records, page.Next = records, records[n-1].Place()
	}
	return large(maxPageBytes-left, func() any { return auditPage(r, page) }), nil
}

func auditQuery(r *request) (audit.Query, error) {
	q := r.query()
	of := audit.Query{May: r.mayUse(), Tenant: q.tenant(), Limit: q.page()}
	of.Before, of.Since = q.after("audit", lock.ValidName), q.since()
	of.Match = q.auditMatch()
	return of, q.err
}

// auditMatch reads which records are asked for; nil is all.
func (q *query) auditMatch() func(*audit.Record) bool {
	operator, byOperator := q.sent("operator")
	action, byAction := q.sent("action")
	name, byLock := q.sent("lock")
	switch {
	case byOperator && lock.CheckHolder(operator) != "":
		q.invalid("operator", lock.CheckHolder(operator))
	case byAction && !slices.Contains(audit.Actions(), action):
		q.invalid("action", "must be one of "+strings.Join(audit.Actions(), ", "))
	case byLock && !lock.ValidName(name):
		q.invalid("lock", "must be the name of a lock")
	case !byOperator && !byAction && !byLock:
		return nil
	}
	operator = strings.ToLower(operator)
	return func(r *audit.Record) bool {
		return (!byAction || r.Action == action) &&
			strings.Contains(strings.ToLower(r.By.Subject), operator) &&
			(!byLock || slices.ContainsFunc(r.Object.Locks, func(named string) bool {
				return matchesName(named, name)
			}))
	}
}

// matchesName reports whether a record's name of locks, which may be a pattern, is one of a lock.
func matchesName(named, name string) bool {
	p, err := auth.ParseNamePattern(named)
	return err == nil && p.Match(name)
}

// recordBytes is about how many bytes a record takes in an answer.
func recordBytes(of *audit.Record) int {
	size := 2*rowBytes + textBytes(of.Reason) + textBytes(of.Object.Holder) + textBytes(of.By.Subject)
	if w := of.Object.Webhook; w != nil {
		size += textBytes(w.Receiver) + textBytes(w.Delivery) + textBytes(w.ID)
	}
	for _, name := range of.Object.Locks {
		size += textBytes(name) + 1
	}
	return size
}

func auditPage(r *request, page *audit.Page) *api.AuditPage {
	out := &api.AuditPage{Records: make([]api.AuditRecord, 0, len(page.Records))}
	for _, one := range page.Records {
		out.Records = append(out.Records, auditRecord(r, one))
	}
	if page.Next != "" {
		out.NextCursor = cursorOf("audit", page.Next)
	}
	return out
}

// auditRecord describes a record. A tenant does not see the addresses of other operators.
func auditRecord(r *request, one *audit.Record) api.AuditRecord {
	o := one.Object
	out := api.AuditRecord{
		ID: one.ID, At: api.InstantOf(one.At), Tenant: one.Tenant, Action: one.Action, Reason: one.Reason,
		Result:    one.Result,
		RequestID: one.By.RequestID, ServerRequestID: one.By.ServerRequestID,
		Actor: api.AuditActor{Subject: one.By.Subject, Tenant: one.By.Tenant, Scope: one.By.Scope},
		Object: api.AuditObject{
			Locks: o.Locks, Entry: string(o.Entry), Holder: o.Holder, Fence: o.Fence, Held: o.Held,
		},
	}
	if out.Object.Locks == nil {
		out.Object.Locks = []string{}
	}
	if o.Webhook != nil {
		out.Object.Webhook = auditWebhookOf(o.Webhook)
	}
	if o.Quota != nil {
		out.Object.Quota = quotaOverrides(o.Quota)
	}
	if o.Until != nil {
		out.Object.Until = new(api.InstantOf(*o.Until))
	}
	if r.principal.MayOperate(one.By.Tenant) {
		out.Actor.Address, out.Actor.Peer = one.By.Address, one.By.Peer
	}
	return out
}

func auditWebhookOf(w *audit.Webhook) *api.AuditWebhook {
	out := &api.AuditWebhook{ID: w.ID, Receiver: w.Receiver, Changed: w.Changed, Delivery: w.Delivery}
	if w.Since != nil {
		out.Since = new(api.InstantOf(*w.Since))
	}
	return out
}

// auditRecords reads a page, unless too many do.
func auditRecords(r *request, q audit.Query) (*audit.Page, error) {
	a := r.endpoints
	if !a.reads.take(r.tenant(), 1) {
		return nil, errOverloaded("reads of the store")
	}
	defer a.reads.give(r.tenant(), 1)
	return a.Audit.Page(r.context(), q)
}

// export answers with all records, part by part. If a part cannot be read, the connection is
// cut, so that no client takes the beginning for all.
func export(r *request, q audit.Query) error {
	a := r.endpoints
	if err := r.skipBody(); err != nil {
		return err
	}
	if !a.exports.take(r.tenant(), 1) {
		return errOverloaded("exports of the audit")
	}
	defer a.exports.give(r.tenant(), 1)
	q.Limit = exportPage
	page, err := a.Audit.Page(r.context(), q)
	if err != nil {
		return err
	}
	defer r.lasts(endless)()
	r.Header("Content-Type", jsonLines)
	r.Header("Cache-Control", "no-store")
	r.Writer.WriteHeader(http.StatusOK)
	if headOnly(r) {
		return nil
	}
	out := http.NewResponseController(unwrapped(r.Writer))
	for {
		if err := writeLines(r, out, page); err != nil {
			panic(http.ErrAbortHandler)
		}
		if q.Before, q.Span = page.Next, page.Span; q.Before == "" {
			return nil
		}
		if page, err = a.Audit.Page(r.context(), q); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// writeLines sends a part. The client has its time for each line.
func writeLines(r *request, out *http.ResponseController, page *audit.Page) error {
	for _, one := range page.Records {
		var line bytes.Buffer
		if err := api.Encode(&line, auditRecord(r, one)); err != nil {
			return err
		}
		line.WriteByte('\n')
		// fails if the connection is closed, as the write will
		_ = out.SetWriteDeadline(time.Now().Add(r.endpoints.AnswerTimeout))
		if _, err := r.Writer.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return out.Flush()
}
