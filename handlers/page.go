package handlers

import (
	"bytes"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/service/view"
)

const (
	// partBytes is how much of a page of locks is written as JSON before a pause of partPause. What keeps
	// a thread busy for milliseconds has others wait for the processor for as long: docs/adr/0019 has what
	// was measured.
	partBytes = 8 << 10
	partPause = 100 * time.Microsecond
)

// inParts is an answer that writes itself as JSON, since it is long.
type inParts interface {
	encodeTo(text *bytes.Buffer) error
}

// encodeTo appends a body as JSON.
func encodeTo(text *bytes.Buffer, body any) error {
	if long, ok := body.(inParts); ok {
		return long.encodeTo(text)
	}
	return api.Encode(text, body)
}

// pageText is a page of locks as its answer.
type pageText struct{ *view.Page }

// encodeTo appends what [api.Encode] would of an [api.LockPage].
func (p pageText) encodeTo(text *bytes.Buffer) error {
	for i, part := 0, 0; i < len(p.Locks); i++ {
		text.WriteString(pageBefore(i))
		before := text.Len()
		if err := api.Encode(text, summaryOf(&p.Locks[i])); err != nil {
			return err
		}
		if part += text.Len() - before; part >= partBytes {
			part = 0
			<-time.After(partPause)
		}
	}
	return p.encodeRest(text)
}

// pageBefore is what stands before the i-th lock.
func pageBefore(i int) string {
	if i == 0 {
		return pageBegins
	}
	return ","
}

const pageBegins = `{"locks":[`

// encodeRest appends what stands behind the locks.
func (p pageText) encodeRest(text *bytes.Buffer) error {
	page := &api.LockPage{Locks: []api.LockSummary{}, Revision: p.Revision}
	if p.Next != "" {
		page.NextCursor = cursorOf("locks", p.Next)
	}
	var rest bytes.Buffer
	if err := api.Encode(&rest, page); err != nil {
		return err
	}
	if len(p.Locks) > 0 {
		rest.Next(len(pageBegins))
	}
	_, err := rest.WriteTo(text)
	return err
}

func summaryOf(l *view.Summary) *api.LockSummary {
	s := &api.LockSummary{Name: l.Name, State: "held", Holders: briefly(l.Holders, l.Name), Waiting: l.Waiting, Fence: l.Newest}
	if l.Waiting > 0 {
		s.State = "contended"
	}
	return s
}
