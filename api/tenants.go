package api

// AdminTenantPage is a page of tenants with locks in use, by name.
type AdminTenantPage struct {
	Seen
	// Tenants of the page.
	Tenants []AdminTenant `json:"tenants"`
	// NextCursor asks for the next page; left out on the last one.
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
	// Bounds are what counts against the tenant's bounds; left out of what is shown to a bearer token
	// that is limited to lock names.
	Bounds *TenantBounds `json:"bounds,omitempty"`
	// Quota is how much the tenant may use, and what it uses; likewise.
	Quota *TenantQuota `json:"quota,omitempty"`
	// Recent is what happened in the last quarter of an hour, as this replica saw it; likewise.
	Recent *SeriesPoint `json:"lately,omitempty"`
}

// TenantBounds are what counts against a tenant's bounds, as the answering replica sees it.
type TenantBounds struct {
	// Places that its entries take in queues.
	Places int `json:"places" minimum:"0" example:"1200"`
	// MaxPlaces is how many they may take.
	MaxPlaces int `json:"max_places" minimum:"0" example:"200000"`
	// RenewalsPerSecond is how many renewals its async entries need while they wait.
	RenewalsPerSecond int `json:"renewals_per_second" minimum:"0" example:"30"`
	// MaxRenewalsPerSecond is how many they may need.
	MaxRenewalsPerSecond int `json:"max_renewals_per_second" minimum:"0" example:"1250"`
}
