package outbox

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

// callbackCall is what is known of an entry that is to be told of its grant, or of its end,
// at a URL of its own. The token is not part of it: it is made when the call is.
type callbackCall struct {
	URL    string  `json:"url"`
	Entry  lock.ID `json:"entry"`
	Number uint64  `json:"number"`
	Lock   string  `json:"lock"`
	Set    bool    `json:"set,omitempty"`
	Tenant string  `json:"-"`
	Held   bool    `json:"held,omitempty"`
	Until  int64   `json:"until_ms,omitempty"` // of a grant, about: when its lease ends unless it is renewed

	lasts time.Time // Until, by this process's clock
}

// roomForToken is what a token adds to a payload at most, in bytes.
const roomForToken = 512

// complete adds the token to what is sent.
func (c *callbackCall) complete(payload []byte, locks Locks) []byte {
	var e api.Event
	if err := json.Unmarshal(payload, &e); err != nil || e.Data.Entry == nil || !c.Held {
		return payload
	}
	e.Data.Entry.Token = locks.Token(&lock.Entry{
		ID: c.Entry, Tenant: c.Tenant, Number: c.Number, Set: c.Set, Claims: []lock.Claim{{Name: c.Lock}},
	})
	return marshal(&e)
}

// callBack tells an entry's own receiver of its grant, or that it will not come.
func (w *owner) callBack(e *lock.Event, it *item) {
	of := e.Entry
	if of.Callback == nil || !concernsCaller(e) || shardOf(of.Tenant) != w.name {
		return
	}
	t := w.target(of.Tenant, Callbacks)
	c := &callbackCall{URL: of.Callback.URL, Entry: of.ID, Number: of.Number, Lock: of.Name(), Set: of.Set, Tenant: of.Tenant, Held: e.Held}
	what := event.Of(e, of.Claims)
	if e.Held {
		until := e.At.Add(of.TTL)
		c.Until, c.lasts = until.UnixMilli(), until
		what.Data.Entry.ExpiresAt = api.InstantOf(until)
	}
	id := callID(e)
	what.ID = id
	payload := short(what, webhook.MaxPayload-roomForToken)
	w.accept(&delivery{
		target: t, id: id, record: recordName(Callbacks, id), kind: string(e.Kind), lock: of.Name(),
		payload: payload, size: len(payload) + len(c.URL), grant: c,
	}, it, []string{string(of.ID)})
}

// callID is the id of an entry's one callback. Entries that were written together share their number, so
// it names the entry too. The number is the grant's fence, which is known also if no event of it is; or
// that of the write that ended the wait.
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

// callBackHeld tells those of some entries that hold now, and whose grants may be among what was missed before
// an event. What an entry's own write caused, and comes after that, is yet to be told.
func (w *owner) callBackHeld(before lock.EventID, it *item, of func(*lock.Entry) bool) {
	held, doubtful := w.Locks.HeldCallbacks()
	for _, e := range held {
		if of(e) {
			w.callBackFor(e, before, it)
		}
	}
	for _, e := range doubtful {
		if of(e) {
			w.doubtCall(e, before, it)
		}
	}
}

func anyEntry(*lock.Entry) bool { return true }

// callBackFor tells who waited for an entry that holds, if it was written before an event.
func (w *owner) callBackFor(e *lock.Entry, before lock.EventID, it *item) {
	if lock.Before(e.Number).Compare(before) < 0 {
		told := lock.EventOfGrant(e)
		told.ID, told.At = lock.Before(before.Number), time.Now()
		w.callBack(&told, it)
	}
}

// concernsCaller reports whether a caller waits for this: the grant, or the end of a wait
// that was not its own doing.
func concernsCaller(e *lock.Event) bool {
	switch e.Kind {
	case lock.EventAcquired:
		return true
	case lock.EventExpired, lock.EventRevoked, lock.EventWaitTimeout, lock.EventDeadlockRefused:
		return !e.Held
	case lock.EventReleased:
		return !e.Held && e.Reason == lock.Mismatched
	case lock.EventEnqueued, lock.EventReleaseRequested, lock.EventStaleWrite, lock.EventOrderContradiction:
	}
	return false
}
