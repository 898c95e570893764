package api

// AdminTenantPage is a page of tenants with locks in use, by name.
type AdminTenantPage struct {
	Seen
	// Tenants of the page.
	Tenants []AdminTenant `json:"tenants"`
	// NextCursor selects the next page; left out on the last one.
	NextCursor string `json:"next_cursor,omitempty" example:"dGVuYW50OmFjbWU"`
	// Total is how many tenants there are on all pages.
	Total int `json:"total" minimum:"0" example:"12"`
}

// AdminTenant is what a tenant uses. An entry of several locks counts at each of them.
type AdminTenant struct {
	// Tenant by its name.
	Tenant string `json:"tenant" example:"acme"`
	// Locks in use.
	Locks int `json:"locks" minimum:"0" example:"120"`
	// Held is how many locks are held.
	Held int `json:"held" minimum:"0" example:"118"`
	// Contended is how many locks others wait for.
	Contended int `json:"contended" minimum:"0" example:"4"`
	// Holding is how many hold.
	Holding int `json:"holding" minimum:"0" example:"119"`
	// Waiting is how many wait.
	Waiting int `json:"waiting" minimum:"0" example:"9"`
	// OldestSince is since when the oldest waiter waits; left out without waiters.
	OldestSince *Instant `json:"oldest_since,omitempty" swaggertype:"string" format:"date-time" example:"2026-01-02T15:04:05.000Z"`
	// Bounds are what counts against the tenant's bounds. A token that is limited to lock names does
	// not see them.
	Bounds *TenantBounds `json:"bounds,omitempty"`
	// Quota is the limits of the tenant and their use. A token that is limited to lock names does not
	// see it.
	Quota *TenantQuota `json:"quota,omitempty"`
	// Recent figures are of the last 15 minutes, as this replica saw them. A token that is limited to
	// lock names does not see them.
	Recent *SeriesPoint `json:"recent,omitempty"`
}

// TenantBounds are what counts against a tenant's bounds, as the answering replica sees it.
type TenantBounds struct {
	// Places is how many queue entries it has; an entry counts once for each of its locks.
	Places int `json:"places" minimum:"0" example:"1200"`
	// MaxPlaces is how many it may have.
	MaxPlaces int `json:"max_places" minimum:"0" example:"200000"`
	// RenewalsPerSecond is how many renewals its async entries need while they wait.
	RenewalsPerSecond int `json:"renewals_per_second" minimum:"0" example:"30"`
	// MaxRenewalsPerSecond is how many they may need.
	MaxRenewalsPerSecond int `json:"max_renewals_per_second" minimum:"0" example:"1250"`
}
