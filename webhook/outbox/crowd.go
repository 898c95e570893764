package outbox

import "time"

// crowd is what makes an owner read no more for a moment: a receiver that does well has more
// before it than it should, as after the shard had no owner for a while. Otherwise what is read
// at once is more than there is room for, and would be missed.
type crowd struct {
	by     *target
	since  time.Time
	waived map[string]time.Time // tenants for whom nobody waits now, and until when
}

const (
	// crowdTime is how long a shard waits for one tenant's receivers, and crowdPause how
	// long it does not then: one that is slow delays others no more than that.
	crowdTime  = 3 * time.Second
	crowdPause = 10 * time.Minute

	crowded = maxOfTarget * 3 / 4
	eased   = maxOfTarget / 2
)

// note takes note of a target that has been given another delivery.
func (c *crowd) note(t *target, now time.Time) {
	if c.by != nil || len(t.pending) < crowded || t.Health.Failures > 0 {
		return
	}
	if until, ok := c.waived[t.tenant]; ok && now.Before(until) {
		return
	}
	c.by, c.since = t, now
}

// waits reports whether nothing is to be read now.
func (c *crowd) waits(now time.Time) bool {
	switch {
	case c.by == nil:
		return false
	case len(c.by.pending) <= eased, c.by.Health.Failures > 0:
		c.by = nil
		return false
	case now.Sub(c.since) < crowdTime:
		return true
	}
	if c.waived == nil {
		c.waived = map[string]time.Time{}
	}
	for tenant, until := range c.waived {
		if now.After(until) {
			delete(c.waived, tenant)
		}
	}
	c.waived[c.by.tenant] = now.Add(crowdPause)
	c.by = nil
	return false
}
