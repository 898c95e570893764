package service

import (
	crand "crypto/rand"
	"io"
	"math/rand/v2"
)

// Rand is where a replica's randomness comes from. It is safe for concurrent use.
type Rand interface {
	io.Reader             // for the ids of entries: nobody must be able to guess it
	Int64N(n int64) int64 // from 0 to n-1, for pauses that replicas must not make in step
}

type systemRand struct{}

func (systemRand) Read(p []byte) (int, error) { return crand.Read(p) }
func (systemRand) Int64N(n int64) int64       { return rand.Int64N(n) }
