package store

// Tenants returns of how many tenants something waits, and how many turns there are.
func (t *Turns[T]) Tenants() (waiting, turns int) { return len(t.waiting), len(t.turns) }
