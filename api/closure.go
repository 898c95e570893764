package api

// CloseBody closes locks.
type CloseBody struct {
	// Tenant of the locks.
	Tenant string `json:"tenant" example:"acme"`
	// Locks is a pattern of lock names with at most one star.
	Locks string `json:"locks" minLength:"1" maxLength:"256" example:"orders:*"`
	// Until is the end, at most six days away.
	Until Instant `json:"until" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Reason that refused requests get.
	Reason string `json:"reason" minLength:"10" maxLength:"500" example:"the stock is counted"`
	// Description for other operators.
	Description string `json:"description,omitempty" maxLength:"200" example:"ticket OPS-311, until Mia is back"`
}

// Closure keeps new entries out of some locks.
type Closure struct {
	// ID of the closure.
	ID string `json:"id" example:"5mdrk1w5pvy0wg1dcjt2b2gthr"`
	// Tenant of the locks.
	Tenant string `json:"tenant" example:"acme"`
	// Locks that are closed.
	Locks string `json:"locks" example:"orders:*"`
	// Since is the start.
	Since Instant `json:"since" swaggertype:"string" format:"date-time" example:"2026-01-02T14:04:05.000Z"`
	// Until is the end, unless an operator ends it earlier.
	Until Instant `json:"until" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Reason in the operator's words.
	Reason string `json:"reason" example:"the stock is counted"`
	// Description for other operators.
	Description string `json:"description,omitempty" example:"ticket OPS-311, until Mia is back"`
	// By is the subject of the operator's bearer token.
	By string `json:"by" example:"ops"`
	// Revision from which on no entry joins. An answer about locks with this revision, or a greater
	// one, shows each entry that joined before.
	Revision uint64 `json:"revision" format:"int64" minimum:"0" example:"1042"`
}

// ClosurePage is a page of closures, in the order in which they began.
type ClosurePage struct {
	// Closures of the page.
	Closures []Closure `json:"closures"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"YWZ0ZXI6MTA0Mg"`
	// StoreLostSince is since when this replica has no current view of the store; the answer is as of
	// then. Left out if the view is current.
	StoreLostSince *Instant `json:"store_lost_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:00.000Z"`
}

// LockClosing is until when and why no new entry joins a lock.
type LockClosing struct {
	// Until is the end, unless an operator ends it earlier.
	Until Instant `json:"until" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Reason in the operator's words.
	Reason string `json:"reason" example:"the stock is counted"`
}
