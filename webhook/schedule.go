package webhook

import "time"

// Delays is the published schedule: how long after the one before it each attempt is
// made. All in all it takes 75 hours and 35 minutes, and up to a fifth more.
func Delays() []time.Duration {
	return []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// State is where a delivery stands.
type State string

// The states of a delivery. From all but the first nothing follows.
const (
	StatePending   State = "pending"   // there is an attempt to come
	StateDelivered State = "delivered" // the receiver has it
	StateFailed    State = "failed"    // the schedule is over
	StateGone      State = "gone"      // the receiver wants nothing any more
	StateExpired   State = "expired"   // it came, or would come, too late to be of use
)

// Progress is what is remembered of a delivery from one attempt to the next.
type Progress struct {
	State    State
	Attempts int       // made so far
	Due      time.Time // of the next one, if it is pending
	NotAfter time.Time // of the message; the zero time is never
}

// Begin is a delivery whose first attempt is due now.
func Begin(now, notAfter time.Time) Progress {
	return Progress{State: StatePending, Due: now, NotAfter: notAfter}.unlessTooLate(now)
}

// After is the delivery after an attempt that ended now. The next one is due after what
// the schedule says, or what the receiver asks for if that is more (24 hours at most),
// and up to a fifth of the schedule's step later: random is from [0, 1). A delivery that
// would then be too late has expired already. One that was rejected goes on: names are
// put right, and operators' settings changed.
func (p Progress) After(r Result, now time.Time, random float64) Progress {
	if r.Outcome == Interrupted { // no fault of the receiver
		p.Due = now
		return p
	}
	if r.Outcome == Expired { // nothing was sent
		p.State = StateExpired
		return p
	}
	p.Attempts++
	delays := Delays()
	switch {
	case r.Outcome == Delivered:
		p.State = StateDelivered
	case r.Outcome == Gone:
		p.State = StateGone
	case p.Attempts >= len(delays):
		p.State = StateFailed
	default:
		step := delays[p.Attempts]
		step += time.Duration(random * float64(step) / 5)
		p.Due = now.Add(max(step, min(r.RetryAfter, maxRetryAfter)))
		return p.unlessTooLate(p.Due)
	}
	return p
}

// AfterAsked is the delivery after an attempt that ended now, and that the tenant requested before
// it was due. One that failed takes no step of the schedule, which continues unchanged, or later if
// the receiver asks for that.
func (p Progress) AfterAsked(r Result, now time.Time) Progress {
	switch r.Outcome {
	case Delivered, Gone, Expired, Interrupted:
		return p.After(r, now, 0)
	case Failed, Throttled, Rejected:
	}
	if at := now.Add(min(r.RetryAfter, maxRetryAfter)); at.After(p.Due) {
		p.Due = at
	}
	return p.unlessTooLate(p.Due)
}

func (p Progress) unlessTooLate(at time.Time) Progress {
	if !p.NotAfter.IsZero() && !at.Before(p.NotAfter) {
		p.State = StateExpired
	}
	return p
}

// When a receiver is disabled because it fails: all of its attempts for so long, and so
// many of them, that neither a clock that jumps nor a few events in a week do it.
const (
	disableAfter    = 5 * 24 * time.Hour
	disableFailures = 10
)

// DisabledBecause says why a receiver is sent nothing any more.
type DisabledBecause string

// The reasons.
const (
	NotDisabled     DisabledBecause = ""
	DisabledGone    DisabledBecause = "gone"    // it answered 410
	DisabledFailing DisabledBecause = "failing" // every attempt failed for five days
)

// Health is what is remembered of a receiver. The zero Health is a new one's.
type Health struct {
	FailingSince time.Time // of the first attempt that failed since one did not
	Failures     int       // since then
	Disabled     DisabledBecause
}

// After is the receiver after an attempt that ended now. One that is disabled stays so
// until a tenant enables it.
func (h Health) After(r Result, now time.Time) Health {
	switch r.Outcome {
	case Interrupted, Expired:
		return h
	case Delivered:
		return Health{Disabled: h.Disabled}
	case Failed, Throttled, Gone, Rejected:
	}
	if h.Failures == 0 || now.Before(h.FailingSince) { // or the clock was set back
		h.FailingSince = now
	}
	h.Failures++
	switch {
	case h.Disabled != NotDisabled:
	case r.Outcome == Gone:
		h.Disabled = DisabledGone
	case h.Failures >= disableFailures && now.Sub(h.FailingSince) >= disableAfter:
		h.Disabled = DisabledFailing
	}
	return h
}
