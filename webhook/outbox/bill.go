package outbox

// bill is what it took to tell tenants since they were charged for it, by tenant.
type bill map[string]cost

// cost is of one tenant: how many subscriptions were looked at for events, told of them or not, and how many deliveries
// were put into the store, from where they go again.
type cost struct{ offered, kept int }

func (b bill) add(tenant string, offered, kept int) {
	was := b[tenant]
	b[tenant] = cost{was.offered + offered, was.kept + kept}
}

// leastOffers is by how many at once a tenant is charged for them: fewer are no whole request, and wait for more.
const leastOffers = 50

// charge has tenants pay that have much to pay for. Who has no subscriptions any more is forgotten.
func (w *owner) charge() {
	for tenant, c := range w.bill {
		rest := c.offered % leastOffers
		if c.offered > rest || c.kept > 0 {
			w.Charge(tenant, c.offered-rest, c.kept)
		}
		if w.bill[tenant] = (cost{offered: rest}); rest == 0 || len(w.targets.byTenant[tenant]) == 0 {
			delete(w.bill, tenant)
		}
	}
}
