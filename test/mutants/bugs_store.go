package main

// storeBugs break what package store decides for all stores.
func storeBugs() []Bug {
	return []Bug{
		{
			Name: "store-entry-for-centuries", Breaks: "what no replica can have written is not believed",
			File: "store/value.go", Anchor: "if v.TTL <= 0 || v.TTL > lock.MaxTTL.Milliseconds() {", Becomes: "if v.TTL <= 0 {",
			In: "./store", Run: "^TestDamage$",
		},
		{
			Name: "store-claims-of-another-lock", Breaks: "an entry stands in the queues of its key only",
			File: "store/value.go", Anchor: "case !slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name == key.Lock }):",
			Becomes: "case !slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name != `` }):",
			In:      "./store", Run: "^TestDamage$",
		},
		{
			Name: "store-damaged-lets-others-in", Breaks: "an entry that cannot be read keeps its place, alone",
			File: "store/value.go", Anchor: "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},",
			Becomes: "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Shared}},",
			In:      "./store", Run: "^TestDamaged$",
		},
	}
}
