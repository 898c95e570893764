package handlers

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
)

const (
	defaultPage = 100
	maxPage     = 1000

	rowsPerRequest = 100 // of a page cost as much as one request

	maxCursor = 460            // bytes
	maxWait   = 24 * time.Hour // that a client can ask for

	instantForm = "must be an instant as 2026-01-02T15:04:05Z"
)

// query reads the parameters of a request. err names the first one that is wrong; the values read
// after it mean nothing.
type query struct {
	r   *request
	err error
}

func (r *request) query() *query { return &query{r: r} }

// sent returns the value of a parameter, and whether the client sent it.
func (q *query) sent(name string) (string, bool) { return q.r.GetQuery(name) }

// reject keeps the first error.
func (q *query) reject(err error) {
	if q.err == nil {
		q.err = err
	}
}

// invalid rejects the parameter with the name unless wrong is "".
func (q *query) invalid(name, wrong string) {
	if wrong != "" {
		q.reject(lock.Invalid(name, "%s", wrong))
	}
}

// page returns the number of rows that a page may have.
func (q *query) page() int { return q.limit(maxPage, defaultPage) }

func (q *query) limit(most, standard int) int {
	text, sent := q.sent("limit")
	if !sent {
		q.reject(q.r.charge((standard - 1) / rowsPerRequest))
		return standard
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		q.reject(lock.Invalid("limit", "must be a whole number from 1 to %d", most))
	} else {
		q.reject(q.r.charge((limit - 1) / rowsPerRequest))
	}
	return limit
}

func (q *query) flag(name string) bool {
	text := q.r.DefaultQuery(name, "false")
	if text != "true" && text != "false" {
		q.invalid(name, "must be true or false")
	}
	return text == "true"
}

// wait returns for how long the request may wait for its grant.
func (q *query) wait() time.Duration {
	const name = "wait_seconds"
	text, sent := q.sent(name)
	if !sent {
		return 0
	}
	wait := api.Decimal(text).Duration
	if !api.IsDecimal(text) || wait() < 0 || wait() > maxWait {
		q.reject(lock.Invalid(name, "must be a number from 0 to %g", maxWait.Seconds()))
		return 0
	}
	return wait()
}

// step returns how long a step of a series is.
func (q *query) step() time.Duration {
	const name = "step_seconds"
	switch q.r.DefaultQuery(name, "10") {
	case "10":
		return figures.Step
	case "300":
		return figures.HourStep
	}
	q.invalid(name, "must be 10 or 300")
	return 0
}

// state returns the state that the listed locks have; "" is any.
func (q *query) state() string {
	state, sent := q.sent("state")
	if sent && state != "held" && state != "contended" {
		q.invalid("state", "must be held or contended")
	}
	return state
}

// since returns the instant from which records are listed; zero is all.
func (q *query) since() time.Time {
	text, sent := q.sent("since")
	if !sent {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.invalid("since", instantForm)
	}
	return at
}

// reason returns why the client changes something, for the audit; "" is no reason.
func (q *query) reason() string {
	reason, sent := q.sent("reason")
	if sent {
		q.invalid("reason", lock.CheckExplanation(reason))
	}
	return reason
}

// tenant returns the tenant that an operator's query names, or the only one that the operator may
// see; "" is all.
func (q *query) tenant() string {
	tenant, sent := q.sent("tenant")
	switch {
	case sent:
		q.reject(q.r.operate(tenant))
	case !q.r.principal.MayOperate(""):
		return q.r.principal.Tenant
	}
	return tenant
}

// sight returns what an operator may see, of one tenant if the query names it.
func (q *query) sight() lists.Sight {
	s := lists.Sight{Tenant: q.tenant()}
	if q.r.principal.Locks != nil {
		s.May = q.r.principal.MayUse
	}
	return s
}

// cursor returns the place after which the page of a list begins, which has a part for each check;
// nil is the beginning.
func (q *query) cursor(list string, valid ...func(part string) bool) []string {
	text, sent := q.sent("cursor")
	if !sent {
		return nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	place, ours := strings.CutPrefix(string(raw), list+"|")
	parts := strings.SplitN(place, "|", len(valid))
	if ours = ours && err == nil && len(parts) == len(valid) && len(text) <= maxCursor; ours {
		for i, check := range valid {
			ours = ours && check(parts[i])
		}
	}
	if !ours {
		q.invalid("cursor", "must be the next_cursor of a page of this list; leave it out to begin again")
		return nil
	}
	return parts
}

// after is cursor for a list whose places have one part; "" is the beginning.
func (q *query) after(list string, valid func(string) bool) string {
	return strings.Join(q.cursor(list, valid), "")
}

// cursorOf returns the cursor of a place in a list. It is encoded so that clients do not take it
// for a name.
func cursorOf(list string, place ...string) string {
	text := strings.Join(slices.Insert(place, 0, list), "|")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// isNumber reports whether the part of a place is a number.
func isNumber(part string) bool {
	_, err := strconv.ParseUint(part, 10, 64)
	return err == nil
}

// numberIn returns a number that isNumber has checked.
func numberIn(part string) uint64 {
	n, _ := strconv.ParseUint(part, 10, 64)
	return n
}

// checkQuery refuses other query parameters than those that are known, and one of them
// twice: a typo, or a field of the body in the wrong place, must not be passed over.
func checkQuery(query string, known []string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return lock.Errorf(lock.InvalidRequest, "the query must be of the form name=value&name=value")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return unknownParameter(name, known)
		case len(values[name]) > 1:
			return lock.Invalid(name, "must not be there twice")
		}
	}
	return nil
}

// unknownParameter names the parameter if its name can be nothing but a name.
func unknownParameter(name string, known []string) error {
	const longest = 30
	if len(name) > longest ||
		strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_-") != "" {
		return lock.Errorf(lock.InvalidRequest, "a query parameter is not known here; leave it out")
	}
	return suggest(lock.Invalid(name, "is not known here as a query parameter"), name, known)
}

// operators are the scopes for operators; an operation needs one of them. What a token with
// [auth.TenantAdmin] may see and change is decided by [request.operate]. Where one of them will do,
// a session of the dashboard does too.
func operators() []auth.Scope { return []auth.Scope{auth.Admin, auth.TenantAdmin} }

// operate returns why an operator may have nothing to do with a tenant: one that he names in
// the path, the query or the body.
func (r *request) operate(tenant string) error {
	if !lock.ValidTenant(tenant) {
		return lock.Invalid("tenant", "must be a tenant: 1 to 63 lower-case letters, digits and "+
			"hyphens, with no hyphen first")
	}
	if !r.principal.MayOperate(tenant) {
		return lock.Errorf(lock.Forbidden, "the caller is limited to its own tenant; "+
			"use a credential with the scope admin")
	}
	return nil
}
