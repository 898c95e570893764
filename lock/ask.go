package lock

import (
	"encoding/json"
	"strconv"
	"time"
)

// Ask is what an entry that waits asks of those who hold: to finish, if they can, by an
// instant. It is a wish: nothing happens when it has passed.
type Ask struct {
	Since  time.Time     // when it was first asked, by the clock of the replica that was asked to
	Within time.Duration // from then on; 0 is as soon as possible
}

// MaxAskWithin is the longest time within which anybody may wish for something.
const MaxAskWithin = 24 * time.Hour

// Wished is the instant by which it is hoped for.
func (a Ask) Wished() time.Time { return a.Since.Add(a.Within) }

// Asks returns what the entry asked for when it joined; ok is false if nothing.
func (e *Entry) Asks() (a Ask, ok bool) {
	if e.AskWithin == nil || e.Tries() {
		return Ask{}, false
	}
	return Ask{Since: e.EnqueuedAt, Within: *e.AskWithin}, true
}

type askText struct {
	Since  int64 `json:"since_ms"`
	Within int64 `json:"within_ms"`
}

// NoticeOfAsk returns the notice by which an entry asks later than when it joined. It is
// one of that entry's for ever, whoever writes it.
func NoticeOfAsk(e *Entry, a Ask) *Notice {
	text, _ := json.Marshal(askText{a.Since.UnixMilli(), a.Within.Milliseconds()}) // two numbers
	return &Notice{
		ID: string(e.ID) + ":" + strconv.FormatUint(e.Number, 10) + ":release", Tenant: e.Tenant, Kind: EventReleaseRequested,
		Locks: []string{e.Name()}, Text: text, Of: e.ID,
	}
}

// Ask returns what a notice of [NoticeOfAsk] says; ok is false if it is none that can be.
func (n *Notice) Ask() (a Ask, ok bool) {
	var text askText
	if n.Kind != EventReleaseRequested || n.Of == "" || json.Unmarshal(n.Text, &text) != nil {
		return Ask{}, false
	}
	a = Ask{time.UnixMilli(text.Since).UTC(), time.Duration(text.Within) * time.Millisecond}
	return a, a.Within >= 0 && a.Within <= MaxAskWithin
}

// EventOfAsk returns what happened when an entry that waits asked those who hold to finish.
// It is about the locks for which it waits.
func EventOfAsk(e *Entry, a Ask, waits []Claim) Event {
	if len(waits) < len(e.Claims) {
		part := *e
		part.Claims = waits
		e = &part
	}
	return Event{Kind: EventReleaseRequested, Entry: e, Ask: &a}
}

// WaitsFor returns the claims of an entry in whose queues it is not in front.
func (m *Member) WaitsFor() []Claim {
	var waits []Claim
	for i := range m.slots {
		if !m.slots[i].inFront {
			waits = append(waits, m.slots[i].claim)
		}
	}
	return waits
}
