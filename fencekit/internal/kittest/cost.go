package kittest

import (
	"slices"
	"testing"
	"time"
)

// Cost reports the median time of a write in each way. The ways alternate, so that what else the
// machine does delays all of them.
func Cost(b *testing.B, ways []Way, address string) {
	accounts := make([]Account, len(ways))
	for i, way := range ways {
		account, err := way.Open(b.Context(), address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = account.Close() })
		if _, err := account.Read(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
		accounts[i] = account
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, account := range accounts {
			began := time.Now()
			if err := account.Write(b.Context(), 1, 70); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, way := range ways {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), way.Name+"-µs")
	}
}
