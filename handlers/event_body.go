package handlers

import (
	"bytes"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// eventMessage returns an event as the reader is told it, nil if it is not told. Most see all
// locks of it, for whom the text is made once.
func eventMessage(f *event.Filter, r *events.Record) []byte {
	claims := f.Claims(&r.Event)
	switch len(claims) {
	case 0:
		return nil
	case len(r.Entry.Claims):
		return r.Text(func(e *lock.Event) []byte { return message(e.ID, event.Of(e, e.Entry.Claims)) })
	}
	return message(r.ID, event.Of(&r.Event, claims))
}

// missedMessage says what a reader was not told.
func missedMessage(m *events.Missed, now time.Time) []byte {
	return message(m.Before, event.Missed(m.After, m.Before, now))
}

// message is an event of an event stream, as HTML's standard has it. JSON has no line
// break.
func message(id lock.EventID, e *api.Event) []byte {
	var text bytes.Buffer
	text.WriteString("id: " + id.String() + "\nevent: " + e.Type + "\ndata: ")
	if err := api.Encode(&text, e); err != nil {
		return nil // nothing in it can fail to be JSON
	}
	text.WriteString("\n\n")
	return bytes.Clone(text.Bytes())
}
