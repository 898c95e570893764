package lock

import (
	"encoding/json"
	"slices"
	"time"
)

// OrderContradiction is orders in which locks were taken that contradict each other: each side leads
// to the class of locks where the next one begins, and the last to the first.
type OrderContradiction struct {
	Found  time.Time
	Sides  []OrderSide // of a long cycle, or one with long names, the first
	Length int         // how many there are
}

// OrderSide is one order of a cycle, with an example: a holder took one lock while it held
// another. Found and At are what one replica saw.
type OrderSide struct {
	From, To            string // classes; "" if they do not fit
	Holder, Held, Taken string
	At                  time.Time
}

type contradictionText struct {
	Found  int64      `json:"found_ms"`
	Length int        `json:"length"`
	Sides  []sideText `json:"sides"`
}

type sideText struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Holder string `json:"holder"`
	Held   string `json:"held"`
	Taken  string `json:"taken"`
	At     int64  `json:"at_ms"`
}

// NoticeOfContradiction returns the notice of a contradiction, under an id that all replicas give it.
// What is too long for a notice is cut.
func NoticeOfContradiction(tenant, id string, r OrderContradiction) *Notice {
	text := contradictionText{r.Found.UnixMilli(), r.Length, nil}
	for _, s := range r.Sides[:min(len(r.Sides), MaxNoticeLocks/2)] {
		text.Sides = append(text.Sides, sideText{s.From, s.To, s.Holder, s.Held, s.Taken, s.At.UnixMilli()})
	}
	const steps = 4
	for i := 0; len(compact(text)) > MaxNoticeText && i < steps; i++ {
		text.shorten(i)
	}
	n := &Notice{ID: id, Tenant: tenant, Kind: EventOrderContradiction, Text: compact(text)}
	for _, s := range text.Sides {
		n.Locks = append(n.Locks, s.Held, s.Taken)
	}
	slices.Sort(n.Locks)
	n.Locks = slices.Compact(n.Locks)
	return n
}

// shorten makes the text of a cycle shorter; the less is lost the earlier.
func (t *contradictionText) shorten(step int) {
	const shortName = 40
	switch step {
	case 0:
		for i := range t.Sides {
			if name := []rune(t.Sides[i].Holder); len(name) > shortName {
				t.Sides[i].Holder = string(name[:shortName])
			}
		}
	case 1:
		t.Sides = t.Sides[:min(2, len(t.Sides))]
	case 2:
		for i := range t.Sides {
			t.Sides[i].From, t.Sides[i].To = "", ""
		}
	default:
		t.Sides = t.Sides[:1]
	}
}

// contradiction returns what a notice of [NoticeOfContradiction] says; nil if it is none that can be.
func (n *Notice) contradiction() *OrderContradiction {
	var text contradictionText
	if n.Kind != EventOrderContradiction || json.Unmarshal(n.Text, &text) != nil || len(text.Sides) == 0 {
		return nil
	}
	r := &OrderContradiction{Found: time.UnixMilli(text.Found).UTC(), Length: text.Length}
	for _, s := range text.Sides {
		if !slices.Contains(n.Locks, s.Held) || !slices.Contains(n.Locks, s.Taken) {
			return nil
		}
		r.Sides = append(r.Sides, OrderSide{s.From, s.To, s.Holder, s.Held, s.Taken, time.UnixMilli(s.At).UTC()})
	}
	return r
}
