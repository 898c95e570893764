package service

import (
	crand "crypto/rand"
	"io"
	"math/rand/v2"
)

// Rand is a replica's source of randomness. It is safe for concurrent use.
type Rand interface {
	io.Reader             // for the ids of entries, which must not be guessable
	Int64N(n int64) int64 // from 0 to n-1, to spread the timers of replicas
}

type systemRand struct{}

func (systemRand) Read(p []byte) (int, error) { return crand.Read(p) }
func (systemRand) Int64N(n int64) int64       { return rand.Int64N(n) }
