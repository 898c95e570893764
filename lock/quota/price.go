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
