package outbox

import "github.com/fencepost/fencepost/lock/quota"

// Cost is what it took to tell one tenant's receivers.
type Cost struct {
	Offered int // how many times a subscription was looked at for an event, told of it or not
	Made    int // deliveries that were begun with because something happened, and not because they were asked for again
	Kept    int // deliveries that were put into the store, from where they go again
}

// bill is what it took to tell tenants since they were charged for it, by tenant.
type bill map[string]Cost

func (b bill) add(tenant string, more Cost) {
	was := b[tenant]
	b[tenant] = Cost{was.Offered + more.Offered, was.Made + more.Made, was.Kept + more.Kept}
}

// mostMade is for how many deliveries a tenant is charged at once: it could have thousands made until the next beat.
const mostMade = 100

// billMade counts a delivery that is begun with, wherever its event was read.
func (w *owner) billMade(tenant string) {
	w.bill.add(tenant, Cost{Made: 1})
	if w.bill[tenant].Made >= mostMade {
		w.chargeOne(tenant)
	}
}

// charge has tenants pay that have much to pay for. Who has no subscriptions any more is forgotten.
func (w *owner) charge() {
	for tenant := range w.bill {
		w.chargeOne(tenant)
	}
}

func (w *owner) chargeOne(tenant string) {
	c := w.bill[tenant]
	rest := c.Offered % quota.UnitOffers // no whole request: they wait for more
	if c.Offered -= rest; c != (Cost{}) {
		w.Charge(tenant, c)
	}
	if w.bill[tenant] = (Cost{Offered: rest}); rest == 0 || len(w.targets.byTenant[tenant]) == 0 {
		delete(w.bill, tenant)
	}
}
