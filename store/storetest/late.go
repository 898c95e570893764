package storetest

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// cutLateTry has tries with keys be given up by a client that is cut off, and repeated by
// another one, which takes their entries back. What the first client has sent may arrive when
// it is no longer cut off, and no client waits for what it would write.
func cutLateTry(t *trial, how Fault) {
	t.warmUp(t.repeatable)
	tries := make([]*lock.Entry, 16)
	for i := range tries {
		tries[i] = t.repeatable("a")
	}
	restore := t.CutB(t.T, how)
	together(len(tries), func(i int) {
		_, _, err := t.B.Enqueue(t.ctx, clone(tries[i]))
		t.wantUnavailable("Enqueue", err)
	})
	for _, draft := range tries { // those that have arrived are joined
		t.remove(t.A, t.enqueue(t.A, draft), lock.Withdrawn)
	}
	restore()
	t.eventually(t.recovery(), "the client works again", func() bool {
		_, _, err := t.B.Queue(t.ctx, t.ref("a"))
		return err == nil
	})
	t.warmUp(t.draft) // over all that the client has, behind what was late
	t.wantQueue(t.A, t.ref("a"))
	again, written, err := t.B.Enqueue(t.ctx, clone(tries[0]))
	if err != nil || !written {
		t.Fatalf("the key of a withdrawn entry: %+v, written %t, %v", again, written, err)
	}
	t.wantQueue(t.A, t.ref("a"), again)
}

// warmUp has a client do what joins need: connections, and what is made for the first time.
func (t *trial) warmUp(draft func(...string) *lock.Entry) {
	t.Helper()
	together(64, func(int) {
		if err := t.warm(draft); err != nil {
			t.Errorf("nothing is cut, and a join fails: %v", err)
		}
	})
}

func (t *trial) warm(draft func(...string) *lock.Entry) error {
	e, _, err := t.B.Enqueue(t.ctx, draft("a"))
	if err != nil {
		return err
	}
	return t.B.Remove(t.ctx, e, lock.Released)
}

// cutWrittenOnce has the answer to a write be lost, and the entry revoked before the call has
// learned that it was written. The call does not write it a second time.
func cutWrittenOnce(t *trial) {
	a := t.follow(t.A)
	var draft *lock.Entry
	var err error
	t.eventually(time.Minute, "an entry is written whose answer is lost", func() (revoked bool) {
		t.eventually(t.recovery(), "the client works", func() bool { return t.warm(t.draft) == nil })
		t.warmUp(t.draft) // what the next id needs is made then, as a rule
		draft = t.draft("a")
		revoked, err = t.revokedMeanwhile(draft)
		return revoked
	})
	var gone *lock.Error
	switch {
	// it had no time to find out
	case errors.As(err, &gone) && gone.Code == lock.StoreUnavailable && gone.OutcomeUnknown:
	case !errors.Is(err, store.ErrNotWritten):
		t.Errorf("Enqueue of what was revoked meanwhile = %v", err)
	}
	t.settle(a)
	if v := a.state(); v.joined[draft.ID] != 1 && v.whole() {
		t.Errorf("the entry was written %d times", v.joined[draft.ID])
	}
	t.eventually(
		t.recovery(), "nothing is left", func() bool { return len(t.queue(t.A, t.ref("a"))) == 0 },
	)
}

// revokedMeanwhile has client B write an entry while it is deaf, and returns what its call says
// after that was revoked. It may need an answer before it can write.
func (t *trial) revokedMeanwhile(draft *lock.Entry) (revoked bool, err error) {
	restore := t.CutB(t.T, Deaf)
	answer := make(chan error, 1)
	go func() {
		_, _, err := t.B.Enqueue(t.ctx, clone(draft))
		answer <- err
	}()
	t.eventually(t.CallLimit+busy, "the call ends", func() bool {
		queue := t.queue(t.A, t.ref("a"))
		if i := lock.Place(queue, draft.ID); i >= 0 {
			err := t.A.Remove(t.ctx, queue[i], lock.Revoked)
			if err != nil && !errors.Is(err, lock.Lost) { // lost if its call has just withdrawn it
				t.Fatalf("Remove: %v", err)
			}
			revoked = err == nil
		}
		return revoked || len(answer) > 0
	})
	if revoked {
		restore = t.CutB(t.T, Broken) // so that the answer does not come after all
	}
	restore()
	return revoked, <-answer
}
