package subscription

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// Overlap is for how long a secret goes on signing after it was replaced.
const Overlap = 24 * time.Hour

// maxReplaced is how many replaced secrets sign beside the current one.
const maxReplaced = webhook.MaxSecrets - 1

// Rotation says which secret of a series is in use. The secrets themselves are nowhere:
// [Keys] makes them.
type Rotation struct {
	Generation int         // counts them, from 1 on
	Rotated    []time.Time // when the last ones were replaced, the newest first
}

// next returns the rotation with a new secret. Several replaced ones are remembered: a
// client that lost the answer rotates again, and its receiver still knows the first.
func (r Rotation) next(now time.Time) Rotation {
	rotated := slices.Insert(slices.Clone(r.Rotated), 0, now.UTC().Truncate(time.Millisecond))
	return Rotation{r.Generation + 1, rotated[:min(len(rotated), maxReplaced)]}
}

// valid returns the generations that sign, the current one first.
func (r Rotation) valid(now time.Time) []int {
	all := []int{r.Generation}
	for i, at := range r.Rotated {
		if generation := r.Generation - 1 - i; generation > 0 && now.Sub(at) < Overlap {
			all = append(all, generation)
		}
	}
	return all
}

func rotationOf(generation int, rotated []int64) Rotation {
	r := Rotation{Generation: generation}
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
