package batch

// Halves divides a batch for a send function that does not know which write failed it.
func Halves[P, O any](writes []*Write[P, O]) [][]*Write[P, O] {
	half := len(writes) / 2
	return [][]*Write[P, O]{writes[:half], writes[half:]}
}
