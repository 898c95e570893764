package deadlock

// Beside is how many of the newest write are remembered.
func (t *Table) Beside() int { return len(t.detector.beside) }

// Looks is how many looks the last change has left.
func (t *Table) Looks() int { return t.detector.looks }
