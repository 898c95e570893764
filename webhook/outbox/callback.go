package outbox

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

// callbackCall is an entry's callback. The token is not part of it: it is derived when it is sent.
type callbackCall struct {
	URL    string  `json:"url"`
	Entry  lock.ID `json:"entry"`
	Number uint64  `json:"number"`
	Lock   string  `json:"lock"`
	Set    bool    `json:"set,omitempty"`
	Tenant string  `json:"-"`
	Held   bool    `json:"held,omitempty"`
	Until  int64   `json:"until_ms,omitempty"` // of a grant: the end of its lease, about

	lasts time.Time // Until, by this process's clock
}

// tokenSize is what a token adds to a payload at most, in bytes.
const tokenSize = 512

// complete adds the token to a payload.
func (c *callbackCall) complete(payload []byte, entries Entries) []byte {
	var e api.Event
	if err := json.Unmarshal(payload, &e); err != nil || e.Data.Entry == nil || !c.Held {
		return payload
	}
	if !c.lasts.IsZero() {
		e.Data.Entry.ExpiresAt = api.InstantOf(c.lasts)
	}
	e.Data.Entry.Token = entries.Token(&lock.Entry{
		ID: c.Entry, Tenant: c.Tenant, Number: c.Number, Set: c.Set, Claims: []lock.Claim{{Name: c.Lock}},
	})
	return marshal(&e)
}

// callBack makes the delivery of an entry's grant, or of its end without one, or has it wait.
func (w *owner) callBack(e *lock.Event, it *item) {
	of := e.Entry
	if of.Callback == nil || !concernsCaller(e) || shardOf(of.Tenant) != w.out.name {
		return
	}
	if t := w.out.targets.of(of.Tenant, Callbacks); !w.postpone(t, e, it) {
		w.call(t, e, it)
	}
}

// call makes the delivery of a callback.
func (w *owner) call(t *target, e *lock.Event, it *item) {
	of := e.Entry
	d := w.out.newDelivery(t, callID(e), e)
	d.Call = &callbackCall{
		URL: of.Callback.URL, Entry: of.ID, Number: of.Number, Lock: of.Name(), Set: of.Set,
		Tenant: of.Tenant, Held: e.Held,
	}
	what := event.Of(e, of.Claims)
	what.ID = d.ID
	if e.Held {
		d.Call.lasts = e.At.Add(of.TTL)
		d.Call.Until = d.Call.lasts.UnixMilli()
		what.Data.Entry.ExpiresAt = api.InstantOf(d.Call.lasts)
	}
	d.Payload = short(what, webhook.MaxPayload-tokenSize)
	w.out.accept(d, it, []string{string(of.ID)})
}

// callHeld calls back the entries that hold and were written before an event: the event of the
// grant may be missing. The events of later entries are still to be read.
func (w *owner) callHeld(before lock.EventID, it *item) {
	for _, e := range w.out.Holders.HeldCallbacks() {
		if lock.Before(e.Number).Compare(before) < 0 {
			w.callBack(grantOf(e), it)
		}
	}
}

// callID is the id of an entry's one callback. Entries that were written together share their
// number, so it names the entry too. The number is the grant's fence, which is known also if no
// event of it is; or that of the write that ended the wait.
func callID(e *lock.Event) string {
	number := e.ID.Number
	if e.Held {
		number = e.Entry.Number
	}
	return strconv.FormatUint(number, 10) + "-" + string(e.Entry.ID)
}

// parseCallID reads what callID writes.
func parseCallID(text string) (number uint64, entry lock.ID, ok bool) {
	digits, id, ok := strings.Cut(text, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, lock.ID(id), ok && err == nil && number <= lock.MaxNumber && id != ""
}

// concernsCaller reports whether an event is an entry's callback: its grant, or the end of a wait
// that its client did not end itself.
func concernsCaller(e *lock.Event) bool {
	switch e.Kind {
	case lock.EventAcquired:
		return true
	case lock.EventExpired, lock.EventRevoked, lock.EventWaitTimeout, lock.EventDeadlockRefused,
		lock.EventSuperseded:
		return !e.Held
	case lock.EventReleased:
		return !e.Held && e.Reason == lock.Mismatched
	default:
		return false
	}
}
