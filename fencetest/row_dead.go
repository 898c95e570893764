package main

import "time"

// deadWaiter has one waiter killed and one give up, and looks whether the next one is granted.
func deadWaiter(b *bench) result {
	all := b.clients("A", "B", "C", "D")
	a, dies, leaves, next := all[0], all[1], all[2], all[3]
	lock := b.lockName("")
	a.hold(lock)
	sent := dies.sent()
	dies.begin(lock, time.Minute)
	dies.queued(sent)
	leaves.acquire(lock, 2*time.Second)
	dies.die()
	sent = next.sent()
	got := next.begin(lock, b.sys.freesWithin()+10*time.Second)
	next.queued(sent)
	began := time.Now()
	a.release()
	return b.nextGranted(<-got, time.Since(began), "after the release, behind a dead waiter")
}

// deadHolder kills the holder.
func deadHolder(b *bench) result {
	both := b.clients("A", "B")
	lock := b.lockName("")
	both[0].hold(lock)
	sent := both[1].sent()
	got := both[1].begin(lock, b.sys.freesWithin()+10*time.Second)
	both[1].queued(sent)
	began := time.Now()
	both[0].die()
	a := <-got
	return b.nextGranted(a, time.Since(began), "after the holder died")
}

func (b *bench) nextGranted(a answer, took time.Duration, after string) result {
	facts := "the next one is granted "
	if a.Event != "held" {
		facts = "the next one gets " + a.Event + " " + a.Text + ", and is not granted within "
	}
	facts += seconds(took) + " " + after
	inTime := a.Event == "held" && took < b.sys.freesWithin()+time.Second
	return b.verdict(facts, shown{"frees", inTime})
}
