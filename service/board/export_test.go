package board

// Draw has the rows be there, as they are a moment after somebody looked first.
func (b *Board) Draw() { b.refresh() }
