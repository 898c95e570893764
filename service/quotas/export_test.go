package quotas

// MaxPaced is how many tenants are remembered.
const MaxPaced = maxPaced

// Remembered counts the tenants whose pace is known.
func (b *Book) Remembered() int {
	b.rates.mu.Lock()
	defer b.rates.mu.Unlock()
	return len(b.rates.tenants)
}
