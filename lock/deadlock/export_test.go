package deadlock

import "github.com/fencepost/fencepost/lock"

// Cycle is what [Table.Search] finds.
func (t *Table) Cycle(e *lock.Entry) []lock.Wait {
	cycle, _ := t.Search(e)
	return cycle
}

// Beside is how many of the newest write are remembered.
func (t *Table) Beside() int { return len(t.detector.beside) }

// Looks is how many looks the last change has left.
func (t *Table) Looks() int { return t.detector.looks }
