package account_test

import (
	"slices"
	"testing"

	"github.com/fencepost/fencepost/examples/settlement/account"
	"github.com/fencepost/fencepost/examples/settlement/invoices"
	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

func due() []invoices.Invoice {
	return []invoices.Invoice{
		{Batch: "a", ID: "1", AmountCents: 100},
		{Batch: "a", ID: "2", AmountCents: 200},
		{Batch: "b", ID: "3", AmountCents: 300},
	}
}

func journal() []ledger.Entry {
	return []ledger.Entry{
		{Lock: "a", Fence: 5, Worker: "bash"},
		{Lock: "a", Fence: 5, Worker: "bash", Invoice: "1", AmountCents: 100},
		{Lock: "b", Fence: 6, Worker: "python"},
		{Lock: "b", Fence: 6, Worker: "python", Invoice: "3", AmountCents: 300},
		{Lock: "a", Fence: 9, Worker: "python"},
		{Lock: "a", Fence: 9, Worker: "python", Invoice: "2", AmountCents: 200},
	}
}

func TestEverythingSettledOnce(t *testing.T) {
	a := account.Of(due(), journal())
	if !a.Settled() || a.Once != 3 || a.PaidCents != 600 || a.DueCents != 600 {
		t.Errorf("account %+v, want 3 settled once and 600 of 600 paid", a)
	}
	shares := []account.Share{
		{Worker: "bash", Locks: 1, Invoices: 1, Cents: 100},
		{Worker: "python", Locks: 2, Invoices: 2, Cents: 500},
	}
	if !slices.Equal(a.Shares, shares) {
		t.Errorf("shares %+v, want %+v", a.Shares, shares)
	}
	holders := []account.Holder{
		{Worker: "bash", Fence: 5, Invoices: 1},
		{Worker: "python", Fence: 9, Invoices: 1},
	}
	if !slices.Equal(a.Holders["a"], holders) {
		t.Errorf("holders of a %+v, want %+v", a.Holders["a"], holders)
	}
}

func TestDamageIsSeen(t *testing.T) {
	pay := func(lock string, fence int64, invoice string, cents int64) ledger.Entry {
		return ledger.Entry{
			Lock: lock, Fence: fence, Worker: "bash", Invoice: invoice, AmountCents: cents,
		}
	}
	whole := journal()
	changed := slices.Clone(whole)
	changed[1].AmountCents = 101
	elsewhere := slices.Clone(whole)
	elsewhere[1].Lock = "b"
	cases := map[string]struct {
		journal                   []ledger.Entry
		twice, never, wrong, late int
	}{
		"paid twice by one that came late": {
			append(slices.Clone(whole), pay("a", 5, "2", 200)), 1, 0, 0, 1,
		},
		"paid twice in order": {append(slices.Clone(whole), pay("a", 9, "1", 100)), 1, 0, 0, 0},
		"never paid":          {whole[:5], 0, 1, 0, 0},
		"another amount":      {changed, 0, 0, 1, 0},
		"under another lock":  {elsewhere, 0, 0, 1, 0},
		"not owed":            {append(slices.Clone(whole), pay("a", 9, "4", 1)), 0, 0, 1, 0},
		"opened late": {
			append(slices.Clone(whole), ledger.Entry{Lock: "a", Fence: 5, Worker: "bash"}), 0, 0, 0, 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := account.Of(due(), c.journal)
			if a.Settled() {
				t.Error("Settled is true")
			}
			got := [4]int{len(a.Twice), len(a.Never), len(a.Wrong), len(a.Late)}
			if want := [4]int{c.twice, c.never, c.wrong, c.late}; got != want {
				t.Errorf("twice, never, wrong, late = %v, want %v", got, want)
			}
		})
	}
}
