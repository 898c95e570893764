package batch

import (
	"cmp"
	"slices"
)

// Apart divides a batch for a send function that does not know which of its writes is at
// fault: by tenants, the one that has fewest first, because one tenant can have many that
// are; those of one tenant in two.
func Apart[P, O any](batch []*Write[P, O]) (parts [][]*Write[P, O]) {
	of := map[string]int{}
	for _, w := range batch {
		i, known := of[w.Tenant]
		if !known {
			i, of[w.Tenant] = len(parts), len(parts)
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], w)
	}
	if len(parts) == 1 {
		return halves(batch)
	}
	slices.SortStableFunc(parts, func(a, b []*Write[P, O]) int { return cmp.Compare(len(a), len(b)) })
	return parts
}

func halves[P, O any](batch []*Write[P, O]) [][]*Write[P, O] {
	half := len(batch) / 2
	return [][]*Write[P, O]{batch[:half], batch[half:]}
}
