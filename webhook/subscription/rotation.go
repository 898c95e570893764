package subscription

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// Overlap is for how long a secret goes on signing after it was replaced.
const Overlap = 24 * time.Hour

// maxReplaced is how many replaced secrets sign beside the current one.
const maxReplaced = webhook.MaxSecrets - 1

// saltSize is in bytes.
const saltSize = 16

// Rotation says which secret of a series is in use. The secrets themselves are nowhere:
// [Keys] makes them, each from a number and a salt. The number alone would not do: when the store
// is restored from a backup, it counts again what was shown already.
type Rotation struct {
	Generation int         // counts them, from 1 on
	Rotated    []time.Time // when the last ones were replaced, the newest first
	Salts      [][]byte    // of the current one and the replaced ones, the newest first
}

// generation is what one secret of a series is made from.
type generation struct {
	number int
	salt   []byte
}

// next returns the rotation with a new secret, the first one of the zero rotation. Several replaced
// ones are remembered: a client that lost the answer rotates again, and its receiver still knows
// the first.
func (r Rotation) next(now time.Time) Rotation {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails: it ends the process rather
	salts := slices.Insert(slices.Clone(r.Salts), 0, salt)
	next := Rotation{Generation: r.Generation + 1, Salts: salts[:min(len(salts), webhook.MaxSecrets)]}
	if r.Generation > 0 {
		rotated := slices.Insert(slices.Clone(r.Rotated), 0, now.UTC().Truncate(time.Millisecond))
		next.Rotated = rotated[:min(len(rotated), maxReplaced)]
	}
	return next
}

// valid returns the generations that sign, the current one first.
func (r Rotation) valid(now time.Time) []generation {
	all := []generation{r.at(0)}
	for i, at := range r.Rotated {
		if g := r.at(i + 1); g.number > 0 && now.Sub(at) < Overlap {
			all = append(all, g)
		}
	}
	return all
}

// at returns the generation that was replaced so many times.
func (r Rotation) at(replaced int) generation {
	g := generation{number: r.Generation - replaced}
	if replaced < len(r.Salts) {
		g.salt = r.Salts[replaced]
	}
	return g
}

func rotationOf(generation int, rotated []int64, salts [][]byte) Rotation {
	r := Rotation{Generation: generation, Salts: salts[:min(len(salts), webhook.MaxSecrets)]}
	for _, at := range rotated[:min(len(rotated), maxReplaced)] {
		r.Rotated = append(r.Rotated, time.UnixMilli(at).UTC())
	}
	return r
}

func millis(times []time.Time) []int64 {
	var all []int64
	for _, t := range times {
		all = append(all, t.UnixMilli())
	}
	return all
}
