package api

// Set is one acquisition of several locks as a whole; `state` selects its form.
type Set struct {
	Held    *HeldSet
	Waiting *WaitingSet
}

// MarshalJSON writes the one that there is.
func (s *Set) MarshalJSON() ([]byte, error) {
	if s.Held != nil {
		return plainJSON(s.Held)
	}
	return plainJSON(s.Waiting)
}

// UnmarshalJSON reads the one that the state names.
func (s *Set) UnmarshalJSON(text []byte) (err error) {
	s.Held, s.Waiting, err = readState[HeldSet, WaitingSet](text)
	return err
}

// HeldSet is a set that holds all its locks.
type HeldSet struct {
	// ID of the set, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Locks of the set in byte order of their names; with `any`, only those that it holds.
	Locks []HeldSetLock `json:"locks"`
	// Any is how many of the requested locks suffice; left out where all are needed.
	Any int `json:"any,omitempty" minimum:"1" maximum:"32"`
	GrantFields
	// State of the set.
	State string `json:"state" enums:"held" example:"held"`
	// WaitedSeconds is how long the grant took; 0 without an entry before it.
	WaitedSeconds Seconds `json:"waited_seconds" swaggertype:"number" minimum:"0" example:"0.25"`
	// ReleaseRequested is set while a waiter asks for one of the locks.
	ReleaseRequested *ReleaseRequested `json:"release_requested,omitempty"`
}

// WaitingSet is a set that stands in the queues of its locks.
type WaitingSet struct {
	// ID of the set, the same for every request with its Idempotency-Key.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Locks of the set in byte order of their names.
	Locks []WaitingSetLock `json:"locks"`
	// Any is how many of the locks suffice; left out where all are needed.
	Any int `json:"any,omitempty" minimum:"1" maximum:"32"`
	GrantFields
	// State of the set.
	State string `json:"state" enums:"waiting" example:"waiting"`
	// Position in the queue where the set is furthest back, 1 is next. With `any` only the best so
	// many queues count.
	Position int `json:"position" minimum:"1" example:"3"`
	// WaitUntil is when the set leaves its queues unless it is granted before.
	WaitUntil *Instant `json:"wait_until,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:05:05.000Z"`
}

// SetLock is one lock of a set.
type SetLock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Mode in which the set shares the lock.
	Mode string `json:"mode" enums:"exclusive,shared,semaphore"`
	// Limit of a semaphore.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000000"`
	// Permits of a semaphore that the entry takes.
	Permits int `json:"permits,omitempty" minimum:"1" maximum:"1000000"`
}

// WaitingSetLock is one lock of a set that waits.
type WaitingSetLock struct {
	SetLock
	// Position in the queue of the lock, 1 is next. Only with `any`, and left out where no entry is in
	// front.
	Position int `json:"position,omitempty" minimum:"1" example:"1"`
}

// HeldSetLock is one lock of a set that holds.
type HeldSetLock struct {
	SetLock
	// Fence grows with each grant of the lock; it is below 2^53.
	Fence uint64 `json:"fence" format:"int64" minimum:"1" maximum:"9007199254740991" example:"1042"`
}

// BusyLock is a lock of a set that was not granted, with its holders.
type BusyLock struct {
	// Name of the lock.
	Name string `json:"name" example:"orders:42"`
	// Holders, the longest holding first, without metadata. Empty if other entries only wait, or the
	// server has no space for them.
	Holders []Holder `json:"holders"`
	// Waiting is how many entries wait for the lock.
	Waiting int `json:"waiting" minimum:"0" example:"3"`
}
