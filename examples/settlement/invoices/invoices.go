// Package invoices reads the work of the settlement example: a CSV file of
// invoices, cut into batches that are each guarded by one lock.
package invoices

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

// Invoice is one amount to be paid exactly once.
type Invoice struct {
	// Batch is the name of the lock that guards it, such as invoices:07.
	Batch string
	// ID names the invoice.
	ID string
	// AmountCents is the amount due, in cents.
	AmountCents int64
}

const (
	batches   = 25
	batchSize = 20
	header    = "batch,invoice,amount_cents\n"
)

// Generate returns the invoices of the example, the same ones every time.
func Generate() []Invoice {
	random := rand.New(rand.NewPCG(500, 2026))
	all := make([]Invoice, 0, batches*batchSize)
	for i := range batches * batchSize {
		all = append(all, Invoice{
			Batch:       fmt.Sprintf("invoices:%02d", i/batchSize),
			ID:          fmt.Sprintf("INV-%04d", i+1),
			AmountCents: 500 + random.Int64N(250_000),
		})
	}
	return all
}

// Write writes invoices as CSV with a header line.
func Write(w io.Writer, all []Invoice) error {
	if _, err := io.WriteString(w, header); err != nil {
		return err
	}
	for _, one := range all {
		if _, err := fmt.Fprintf(w, "%s,%s,%d\n", one.Batch, one.ID, one.AmountCents); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what Write wrote.
func Read(r io.Reader) ([]Invoice, error) {
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read invoices: %w", err)
	}
	var all []Invoice
	for i, record := range records[min(1, len(records)):] {
		if len(record) != 3 {
			return nil, fmt.Errorf("read invoices: line %d has %d fields, not 3", i+2, len(record))
		}
		cents, err := strconv.ParseInt(record[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read invoices: line %d: %w", i+2, err)
		}
		all = append(all, Invoice{Batch: record[0], ID: record[1], AmountCents: cents})
	}
	return all, nil
}
