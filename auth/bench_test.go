package auth_test

import (
	"testing"
)

// BenchmarkVerify: Hit is what every request costs, First what the first one
// with a token costs, Forged what an unauthenticated request costs.
func BenchmarkVerify(b *testing.B) {
	v, ctx := strict(b), b.Context()
	for _, s := range allSigners() {
		raw := s.token(nil)
		accept(b, v, raw)
		b.Run("Hit/"+s.alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(ctx, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("First/"+s.alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := v.VerifyAnew(ctx, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("HitParallel128", func(b *testing.B) {
		raw := rs().token(nil)
		b.ReportAllocs()
		b.SetParallelism(64) // times two cores
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := v.Verify(ctx, raw); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("Forged", func(b *testing.B) {
		forged := signer{"HS256", "", make([]byte, 32)}.token(nil)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(ctx, forged); err == nil {
				b.Fatal("a forged token was accepted")
			}
		}
	})
}

func BenchmarkMayUse(b *testing.B) {
	v := strict(b)
	p := accept(b, v, hs().token(map[string]any{"locks": []string{"audit:*", "a*c", "orders:*"}}))
	b.ReportAllocs()
	for b.Loop() {
		if !p.MayUse("orders:4711") {
			b.Fatal("refused")
		}
	}
}
