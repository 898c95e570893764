package storetest

import (
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func distrustCases() []testCase {
	return []testCase{{name: "distrust/no new entries, the old ones go on", run: distrust}}
}

// distrust tells the store, through one client, of a number that it has not
// reached. The other client follows the store, as every replica does.
func distrust(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	kept, removed := t.enqueue(t.A, t.draft("a")), t.enqueue(t.B, t.draft("a"))
	for i := range 2 {
		if err := t.client(i).Refusal(); err != nil {
			t.Errorf("refused before anything was wrong: %v", err)
		}
	}
	if err := t.A.Distrust(t.ctx, removed.Number+1_000_000); err != nil {
		t.Fatalf("Distrust: %v", err)
	}
	t.wantRefusal(t.A)
	t.eventually(
		t.Late, "the other client knows, which is asked for nothing",
		func() bool { return t.B.Refusal() != nil },
	)
	t.eventually(t.Late, "the other client refuses", func() bool {
		_, _, err := t.B.Enqueue(t.ctx, t.draft("b"))
		return err != nil
	})
	t.wantRefusal(t.B)
	late := t.Reopen(t.T)
	t.wantRefusal(late)
	for i := range 2 {
		if err := t.client(i).Renew(t.ctx, kept); err != nil {
			t.Errorf("Renew: %v", err)
		}
	}
	t.remove(t.A, removed, lock.Released)
	t.wantQueue(t.B, t.ref("a"), kept)
	for _, f := range append(feeds, t.follow(late)) {
		if !f.await(t.Late, func() bool { return f.current && f.has(kept.ID) && !f.has(removed.ID) }) {
			t.Error("the feed does not go on")
		}
	}
}

func (t *trial) wantRefusal(s store.Store) {
	t.Helper()
	t.Helper()
	_, _, err := s.Enqueue(t.ctx, t.draft("c"))
	if t.wantUnavailable("Enqueue into a store that lost its past", err) {
		t.Error("the refusal is ambiguous")
	}
	if t.wantUnavailable("Refusal of a store that lost its past", s.Refusal()) {
		t.Error("what it says of grants is ambiguous")
	}
	t.wantQueue(t.A, t.ref("c"))
}
