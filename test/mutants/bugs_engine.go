package main

// engineBugs break what follows from the answers to single attempts to write. The simulation finds
// each, among the first hundreds of its histories.
func engineBugs() []Bug {
	return []Bug{
		{
			Name:    "engine-settled-while-it-may-come",
			Breaks:  "what is sent is shut out before its outcome is read",
			File:    "store/engine/join.go",
			Anchor:  "if err := j.ShutOut(ctx); err != nil {\n\t\treturn nil, err\n",
			Becomes: "if err := error(nil); err != nil {\n\t\treturn nil, err\n",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:   "engine-shut-out-in-vain",
			Breaks: "an outcome is read only if what was sent is shut out",
			File:   "store/engine/join.go",
			Anchor: "if err := j.ShutOut(ctx); err != nil {\n\t\treturn nil, err\n",
			Becomes: "if err := j.ShutOut(ctx); err != nil && ctx.Err() != nil {\n" +
				"\t\treturn nil, err\n",
			In: "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-taken-back-while-it-may-come",
			Breaks:  "no late write follows the removal of an abandoned entry",
			File:    "store/engine/join.go",
			Anchor:  "if err := j.ShutOut(ctx); err != nil {\n\t\treturn err\n",
			Becomes: "if err := error(nil); err != nil {\n\t\treturn err\n",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-given-up-stays",
			Breaks:  "an abandoned entry is removed",
			File:    "store/engine/join.go",
			Anchor:  "case found != nil && !j.entry.Recoverable():",
			Becomes: "case false:",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-key-taken-back",
			Breaks:  "an entry that its client can come back for stays",
			File:    "store/engine/join.go",
			Anchor:  "case found != nil && !j.entry.Recoverable():",
			Becomes: "case found != nil:",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-fresh-entry-written-twice",
			Breaks:  "one call writes one entry, once",
			File:    "store/engine/join.go",
			Anchor:  "if found == nil && !j.entry.Resumable() {",
			Becomes: "if found == nil && j.entry.Resumable() {",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:   "engine-silence-is-refusal",
			Breaks: "a write without an answer may have happened",
			File:   "store/engine/join.go",
			Anchor: "case !errors.Is(err, batch.ErrNotSent) && !errors.As(err, &final):\n" +
				"\t\tj.unsettled = true\n",
			Becomes: "case !errors.Is(err, batch.ErrNotSent) && !errors.As(err, &final):\n",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-denies-what-may-be-done",
			Breaks:  "a request that may have taken effect is not reported as failed",
			File:    "store/engine/join.go",
			Anchor:  "\twhy.OutcomeUnknown = true\n",
			Becomes: "",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
		{
			Name:    "engine-full-is-refusal",
			Breaks:  "a write that a full store refused may have happened",
			File:    "store/engine/join.go",
			Anchor:  "case errors.As(err, &full):\n\t\tj.unsettled = true\n",
			Becomes: "case errors.As(err, &full):\n",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
	}
}
