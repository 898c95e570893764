package quota

// unitBytes is for how many bytes that are read and answered a request costs one more: to write what is
// told as JSON takes about as long as another small request. docs/adr/0019 has what was measured.
const unitBytes = 4 << 10

// unitNames is for how many names that are looked at a request costs one more: 1 000 take 50 µs.
const unitNames = 1000

// unitRecords is for how many small records that the store reads a request costs one more: most have 1 KiB at most.
const unitRecords = 4

// unitHolders is for how many holders beyond the first of each lock a list costs one more, beside its bytes: to find
// when each came to hold takes as long as to write it.
const unitHolders = 50

// unitLooks is for how many places of queues, at which is looked for a deadlock, a request costs one more: 5 000 take 2 ms, and
// twice as long again when it is written.
const unitLooks = 40

// UnitOffers is for how many times that one of a tenant's webhooks is looked at for an event the tenant pays for a request:
// to find out that 50 are not told of it takes as long as a request.
const UnitOffers = 50

// attempts is for how many requests a tenant pays for a delivery, which is signed and sent over a connection of its own,
// and storeWrites where it is put into the store, and taken away again.
const attempts, storeWrites = 3, 2

// PriceOfTelling is what it costs to tell a tenant's webhooks, in requests: how many times one of them is looked at for
// an event, how many deliveries are made of it, and how many of these are put into the store.
func PriceOfTelling(offered, made, kept int) int {
	return offered/UnitOffers + attempts*made + storeWrites*kept
}

// PriceOfSet is what an acquire of so many locks costs, in requests for one: the store writes each.
func PriceOfSet(locks int) int { return max(1, locks) }

// PriceOfBytes is what a request costs beside for its body and its answer, in requests.
func PriceOfBytes(n int) int { return n / unitBytes }

// PriceOfNames is what a list costs beside for the names that it looked at, shown or not, in requests.
func PriceOfNames(n int) int { return n / unitNames }

// PriceOfHolders is what a list costs beside for the holders that it looked up, but for the first of each lock, in
// requests.
func PriceOfHolders(n int) int { return n / unitHolders }

// PriceOfLooks is what an acquire costs beside for the places of queues at which it had looked for a deadlock, in requests.
func PriceOfLooks(n int) int { return n / unitLooks }

// PriceOfRecords is what a request costs beside for the small records that the store read for it, shown or not, in requests.
func PriceOfRecords(n int) int { return n / unitRecords }
