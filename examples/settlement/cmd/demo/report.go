package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/examples/settlement/account"
	"github.com/fencepost/fencepost/examples/settlement/invoices"
	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

const (
	invoiceFile = "invoices.csv"
	batchSize   = 20
)

// report is what the ledger shows after the play.
type report struct {
	store       string
	fencing     bool
	kill, pause question
	stoppedFor  time.Duration
	due         []invoices.Invoice
	account     account.Account
	refusals    []ledger.Refusal
	lastWords   string // of the stopped worker about the lock that it lost
}

func (p *play) report(ctx context.Context) (*report, error) {
	r := &report{
		store:      p.store,
		fencing:    p.fencing,
		kill:       p.kill,
		pause:      p.pause,
		stoppedFor: p.stoppedFor,
	}
	file, err := os.ReadFile(invoiceFile)
	if err != nil {
		return nil, err
	}
	if r.due, err = invoices.Read(bytes.NewReader(file)); err != nil {
		return nil, err
	}
	var journal []ledger.Entry
	err = errors.Join(
		getJSON(ctx, p.ledgerURL+"/journal", &journal),
		getJSON(ctx, p.ledgerURL+"/refusals", &r.refusals),
	)
	r.account = account.Of(r.due, journal)
	for _, line := range p.worker(stopped).lines() {
		if strings.Contains(line, fmt.Sprintf("fence %d: stops", p.pause.fence)) {
			r.lastWords = line
		}
	}
	return r, err
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(
		w,
		"%d invoices in %d batches of %d, one lock each; TTL %s s; store %s; the ledger %s\n\n",
		len(r.due),
		len(r.due)/batchSize,
		batchSize,
		ttlSeconds,
		r.store,
		map[bool]string{true: "checks the fence", false: "DOES NOT check the fence"}[r.fencing],
	)
	fmt.Fprintf(
		w,
		"%-11s killed with -9 while it held %s with fence %d\n",
		r.kill.worker,
		r.kill.lock,
		r.kill.fence,
	)
	fmt.Fprintf(w, "%-11s started in its place\n", "bash-2")
	fmt.Fprintf(w, "%-11s stopped for %.1f s while it held %s with fence %d, just before it paid %s\n",
		r.pause.worker, r.stoppedFor.Seconds(), r.pause.lock, r.pause.fence, r.pause.invoice)
	fmt.Fprintln(w, "\nWho held these two locks, in order:")
	r.printHolders(w, r.kill.lock)
	r.printHolders(w, r.pause.lock)
	r.printLateWrite(w)
	r.printTotals(w)
}

func (r *report) printHolders(w io.Writer, lock string) {
	for _, h := range r.account.Holders[lock] {
		fmt.Fprintf(
			w,
			"  %s  fence %-8d %-11s settled %2d of %d\n",
			lock,
			h.Fence,
			h.Worker,
			h.Invoices,
			batchSize,
		)
	}
}

func (r *report) printLateWrite(w io.Writer) {
	fmt.Fprintf(w, "\nWhen %s woke up, it sent its write:\n", r.pause.worker)
	for _, x := range r.refusals {
		fmt.Fprintf(
			w,
			"  %s %s: REFUSED, fence presented %d, fence known %d\n",
			x.Lock,
			x.Invoice,
			x.Fence,
			x.Known,
		)
	}
	for _, x := range r.account.Late {
		fmt.Fprintf(w, "  %s %s: ACCEPTED with fence %d, after a higher fence: %s paid again\n",
			x.Lock, x.Invoice, x.Fence, euros(x.AmountCents))
	}
	fmt.Fprintf(w, "  its log: %s\n", r.lastWords)
}

func (r *report) printTotals(w io.Writer) {
	fmt.Fprintf(w, "\n%-12s %6s %9s %16s\n", "worker", "locks", "invoices", "amount")
	for _, s := range r.account.Shares {
		fmt.Fprintf(w, "%-12s %6d %9d %16s\n", s.Worker, s.Locks, s.Invoices, euros(s.Cents))
	}
	a := r.account
	fmt.Fprintf(w, "\nsettled exactly once  %d of %d\n", a.Once, len(r.due))
	fmt.Fprintf(w, "settled twice         %s\n", listed(a.Twice))
	fmt.Fprintf(w, "never, or wrong       %s\n", listed(slices.Concat(a.Never, a.Wrong)))
	fmt.Fprintf(w, "money moved           %s of %s due\n\n", euros(a.PaidCents), euros(a.DueCents))
	if err := r.verdict(); err != nil {
		return // told on standard error
	}
	if r.fencing {
		fmt.Fprintln(
			w,
			"Every invoice was settled exactly once: the fence stopped the write that the lock could not.",
		)
		return
	}
	fmt.Fprintf(w, "DAMAGE: without the fence %s was settled twice and %s too much was paid.\n",
		strings.Join(a.Twice, " "), euros(a.PaidCents-a.DueCents))
}

// verdict returns what is missing from the story; with the fence off the story
// is the damage.
func (r *report) verdict() error {
	var missing []error
	expect := func(holds bool, what string) {
		if !holds {
			missing = append(missing, errors.New("the story does not hold: "+what))
		}
	}
	for _, lock := range []string{r.kill.lock, r.pause.lock} {
		turns := r.account.Holders[lock]
		rising := slices.IsSortedFunc(
			turns,
			func(a, b account.Holder) int { return int(a.Fence - b.Fence) },
		)
		expect(len(turns) > 1 && rising, lock+" was not taken over with a higher fence")
	}
	for _, language := range []string{"bash", "python", "javascript"} {
		expect(slices.ContainsFunc(r.account.Shares, func(s account.Share) bool {
			return strings.HasPrefix(s.Worker, language) && s.Invoices > 0
		}), language+" settled nothing")
	}
	expect(len(r.account.Never)+len(r.account.Wrong) == 0, "invoices are missing or wrong")
	if r.fencing {
		r.expectRefusal(expect)
	} else {
		r.expectDamage(expect)
	}
	return errors.Join(missing...)
}

func (r *report) expectRefusal(expect func(bool, string)) {
	expect(
		r.account.Settled() && r.account.Once == len(r.due),
		"not every invoice was settled exactly once",
	)
	expect(slices.ContainsFunc(r.refusals, func(x ledger.Refusal) bool {
		return x.Lock == r.pause.lock && x.Invoice == r.pause.invoice && x.Worker == r.pause.worker &&
			x.Fence == r.pause.fence && x.Fence < x.Known
	}), "the late write was not refused")
	expect(strings.Contains(r.lastWords, "refused: 409"), "the stopped worker was not told 409")
}

func (r *report) expectDamage(expect func(bool, string)) {
	expect(slices.Equal(r.account.Twice, []string{r.pause.invoice}), "the late write did no damage")
	expect(
		len(r.account.Late) == 1 &&
			r.account.PaidCents-r.account.DueCents == r.account.Late[0].AmountCents,
		"the money moved does not show it",
	)
	expect(len(r.refusals) == 0, "a write was refused though the fence is off")
}

// listed writes how many names there are, and the first few of them.
func listed(names []string) string {
	shown := strings.Join(names[:min(5, len(names))], " ")
	return strings.TrimSpace(fmt.Sprint(len(names), " ", shown))
}

// euros writes cents as 1,234.56 EUR.
func euros(cents int64) string {
	whole := fmt.Sprint(cents / 100)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s.%02d EUR", whole, cents%100)
}
