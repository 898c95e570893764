// Package account says from the ledger's journal who held what, and whether every
// invoice was settled once.
package account

import (
	"maps"
	"slices"

	"github.com/fencepost/fencepost/examples/settlement/invoices"
	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

// Account is what the journal shows, measured against the invoices that were due.
type Account struct {
	// Once counts the invoices that were paid exactly once and in full.
	Once int
	// Twice are the invoices paid more than once, Never those not paid, and Wrong
	// those paid once but with another amount or under another lock; each in order.
	Twice, Never, Wrong []string
	// PaidCents is the money that moved, DueCents what should have moved.
	PaidCents, DueCents int64
	// Late are the writes accepted after a write with a higher fence of the same lock.
	Late []ledger.Entry
	// Shares is what each worker did, by name.
	Shares []Share
	// Holders lists, for each lock, who opened its batch, in that order.
	Holders map[string][]Holder
}

// Share is what one worker settled.
type Share struct {
	Worker          string
	Locks, Invoices int
	Cents           int64
}

// Holder is one turn at a lock.
type Holder struct {
	Worker string
	Fence  int64
	// Invoices counts what was paid with this fence.
	Invoices int
}

// Of draws up the account of a journal, given in the order of acceptance.
func Of(due []invoices.Invoice, journal []ledger.Entry) Account {
	a := Account{Holders: map[string][]Holder{}}
	payments := map[string][]ledger.Entry{}
	newest := map[string]int64{}
	shares := map[string]*Share{}
	for _, e := range journal {
		if e.Fence < newest[e.Lock] {
			a.Late = append(a.Late, e)
		}
		newest[e.Lock] = max(newest[e.Lock], e.Fence)
		if shares[e.Worker] == nil {
			shares[e.Worker] = &Share{Worker: e.Worker}
		}
		shares[e.Worker].add(e)
		a.hold(e)
		if e.Invoice != "" {
			a.PaidCents += e.AmountCents
			payments[e.Invoice] = append(payments[e.Invoice], e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		a.Shares = append(a.Shares, *shares[name])
	}
	a.compare(due, payments)
	return a
}

func (s *Share) add(e ledger.Entry) {
	if e.Invoice == "" {
		s.Locks++
		return
	}
	s.Invoices++
	s.Cents += e.AmountCents
}

func (a *Account) hold(e ledger.Entry) {
	turns := a.Holders[e.Lock]
	if e.Invoice == "" {
		a.Holders[e.Lock] = append(turns, Holder{Worker: e.Worker, Fence: e.Fence})
		return
	}
	for i := range turns {
		if turns[i].Fence == e.Fence {
			turns[i].Invoices++
		}
	}
}

func (a *Account) compare(due []invoices.Invoice, payments map[string][]ledger.Entry) {
	for _, invoice := range due {
		a.DueCents += invoice.AmountCents
		switch paid := payments[invoice.ID]; {
		case len(paid) == 0:
			a.Never = append(a.Never, invoice.ID)
		case len(paid) > 1:
			a.Twice = append(a.Twice, invoice.ID)
		case paid[0].AmountCents != invoice.AmountCents || paid[0].Lock != invoice.Batch:
			a.Wrong = append(a.Wrong, invoice.ID)
		default:
			a.Once++
		}
		delete(payments, invoice.ID)
	}
	a.Wrong = append(a.Wrong, slices.Sorted(maps.Keys(payments))...) // of no invoice
}

// Settled reports whether every invoice was paid exactly once and nothing else was.
func (a Account) Settled() bool {
	return len(a.Twice)+len(a.Never)+len(a.Wrong)+len(a.Late) == 0 && a.PaidCents == a.DueCents
}
