package figures

import (
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// MaxPast bounds the kept events of a lock, and maxPast those of all locks.
	MaxPast = 50
	maxPast = 100_000 // about 10 MB
)

// Past is a kept event of a lock.
type Past struct {
	ID     lock.EventID
	Kind   lock.EventKind
	Entry  lock.ID
	Holder string
	Number uint64
	TTL    time.Duration // of the entry
	Held   bool          // it holds, or held until its end
	Reason lock.Reason   // of an end
	Note   *lock.Note    // of an end that an operator caused
	At     time.Time
	Lasted time.Duration // how long it waited for its grant; at an end, how long it held
}

// pasts are events, the oldest first. They are kept as bytes: 100 000 structs with pointers would
// take three times the space, and cost the garbage collector time.
type pasts struct {
	text  []byte
	count int
}

// add returns by how many the kept events grew.
func (p *pasts) add(what *lock.Event) int {
	more := 1
	if p.count == MaxPast {
		oldest := pastText{p.text}
		oldest.skip()
		p.text, more = oldest.rest, 0
	}
	var buffer [256]byte
	p.text = append(p.text, appendPast(buffer[:0], what)...)
	p.count += more
	return more
}

// read returns the events, the newest first.
func (p *pasts) read() []Past {
	out, text := make([]Past, p.count), pastText{p.text}
	for i := range out {
		out[len(out)-1-i] = text.read()
	}
	return out
}

// appendPast appends an event in the form that [pastText.read] reads.
func appendPast(to []byte, what *lock.Event) []byte {
	by, note := "", ""
	if what.Note != nil {
		by, note = what.Note.By, what.Note.Reason
	}
	for _, n := range []uint64{
		what.ID.Number, uint64(what.ID.Index), what.Entry.Number, uint64(what.At.UnixNano()),
		uint64(what.Lasted), uint64(what.Entry.TTL),
	} {
		to = binary.AppendUvarint(to, n)
	}
	held := byte(0)
	if what.Held {
		held = 1
	}
	to = append(to, held)
	for _, word := range []string{
		string(what.Kind), string(what.Entry.ID), what.Entry.Holder, string(what.Reason), by, note,
	} {
		to = append(binary.AppendUvarint(to, uint64(len(word))), word...)
	}
	return to
}

// pastText is the unread rest of some events.
type pastText struct{ rest []byte }

func (t *pastText) read() Past {
	p := Past{
		ID: lock.EventID{Number: t.number(), Index: uint32(t.number())}, Number: t.number(),
		At: time.Unix(0, int64(t.number())), Lasted: time.Duration(t.number()),
		TTL: time.Duration(t.number()), Held: t.number() == 1,
		Kind: lock.EventKind(t.word()), Entry: lock.ID(t.word()), Holder: t.word(),
		Reason: lock.Reason(t.word()),
	}
	if n := (lock.Note{By: t.word(), Reason: t.word()}); n != (lock.Note{}) {
		p.Note = &n
	}
	return p
}

// skip skips an event, without the strings that read makes.
func (t *pastText) skip() {
	for range 7 {
		t.number()
	}
	for range 6 {
		n := t.number()
		t.rest = t.rest[n:]
	}
}

func (t *pastText) number() uint64 {
	n, size := binary.Uvarint(t.rest)
	t.rest = t.rest[size:]
	return n
}

func (t *pastText) word() string {
	n := t.number()
	word := string(t.rest[:n])
	t.rest = t.rest[n:]
	return word
}
