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

// print says what happened: four lines for the damage, six for the run without any.
func (r *report) print(w io.Writer) {
	checks := map[bool]string{true: "checks", false: "does not check"}[r.fencing]
	fmt.Fprintf(w, "\nThe ledger %s the fence. %d invoices, %d locks, TTL %s s, store %s.\n",
		checks, len(r.due), len(r.due)/batchSize, ttlSeconds, r.store)
	late := r.next(r.pause)
	fmt.Fprintf(w, "  %s held %s with fence %d and was paused for %.1f s, longer than its TTL, just before a write.\n",
		r.pause.worker, r.pause.lock, r.pause.fence, r.stoppedFor.Seconds())
	fmt.Fprintf(w, "  Its lease expired. %s acquired %s with fence %d and finished the batch.\n",
		late.Worker, r.pause.lock, late.Fence)
	fmt.Fprintf(w, "  %s resumed and sent its write with fence %d: %s\n", r.pause.worker, r.pause.fence, r.outcome())
	if r.fencing {
		dead := r.next(r.kill)
		fmt.Fprintf(w, "  %s held %s with fence %d and was killed. After its TTL, %s acquired the lock with fence %d.\n",
			r.kill.worker, r.kill.lock, r.kill.fence, dead.Worker, dead.Fence)
		fmt.Fprintf(w, "  %d of %d invoices settled exactly once, %s paid, %s due.\n",
			r.account.Once, len(r.due), euros(r.account.PaidCents), euros(r.account.DueCents))
	}
}

// next returns the holder of a lock after the worker that was struck.
func (r *report) next(struck question) account.Holder {
	for _, h := range r.account.Holders[struck.lock] {
		if h.Fence > struck.fence {
			return h
		}
	}
	return account.Holder{}
}

// outcome says what the ledger did with the late write.
func (r *report) outcome() string {
	for _, x := range r.refusals {
		if x.Worker == r.pause.worker {
			return fmt.Sprintf("rejected with 409, because the ledger had seen fence %d.", x.Known)
		}
	}
	return fmt.Sprintf("accepted. %d invoice paid twice, %s too much.",
		len(r.account.Twice), euros(r.account.PaidCents-r.account.DueCents))
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

// euros writes cents as 1,234.56 EUR.
func euros(cents int64) string {
	whole := fmt.Sprint(cents / 100)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s.%02d EUR", whole, cents%100)
}
