package deadlock

// Looks is how many looks the last change has left.
func (t *Table) Looks() int { return t.detector.looks }
