package simulation

import "time"

const ms = time.Millisecond

// scenarios are all that are explored; docs/internals/explore.md lists them.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{
		queueScenarios(), keyScenarios(), waitScenarios(), storeScenarios(), callbackScenarios(),
	} {
		all = append(all, some...)
	}
	return all
}

// queueScenarios are about holders.
func queueScenarios() []scenario {
	return []scenario{
		{
			name: "hand-over", faults: []string{crashBefore, crashAfter, still},
			clients: [][]step{
				{take(0, 0, on(0)), give(30*ms, 0)},
				{take(10*ms, 1, on(0)), give(60*ms, 1)},
			},
		},
		{
			name: "hand-over-to-the-second", faults: []string{leave},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 1)},
				{take(10*ms, 0, on(0))},
				{take(15*ms, 1, on(0))},
			},
		},
		{
			name: "set-against-single", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0), on(1)), give(40*ms, 1)},
				{take(0, 1, on(1)), give(20*ms, 1)},
				{take(2*ms, 0, on(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "two-sets", faults: []string{crashBefore, crashAfter},
			clients: [][]step{
				{take(0, 0, on(0), on(1)), give(20*ms, 0)},
				{take(0, 1, on(0), on(1), waits(time.Second)), give(1600*ms, 1)},
			},
		},
		{
			name: "any-of-a-pool", faults: []string{crashAfter},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(10*ms, 0, anyOf(0, 1)), give(40*ms, 1)},
				{take(10*ms, 1, anyOf(0, 1)), give(50*ms, 0)},
			},
		},
		{
			name: "pool-against-singles", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(0, 1, on(1)), give(20*ms, 1)},
				{take(10*ms, 0, anyOf(0, 1)), give(60*ms, 1)},
			},
		},
		{
			name: "permits", faults: []string{crashAfter},
			clients: [][]step{
				{take(0, 0, permits(1, 2)), give(20*ms, 0)},
				{take(2*ms, 1, permits(2, 2)), give(1600*ms, 1)},
				{take(4*ms, 0, permits(1, 2)), give(1600*ms, 1)},
			},
		},
		{
			name: "readers-and-a-writer", faults: []string{leave},
			clients: [][]step{
				{take(0, 0, sharing(0)), give(20*ms, 0)},
				{take(2*ms, 1, on(0)), give(1600*ms, 1)},
				{take(4*ms, 0, sharing(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "modes-that-disagree",
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(2*ms, 1, permits(1, 2)), give(1600*ms, 1)},
				{take(20*ms, 1, permits(1, 3)), give(1600*ms, 1)},
			},
		},
		{
			name: "only-the-newest", faults: []string{leave},
			clients: [][]step{
				{take(0, 0, on(0)), give(30*ms, 0)},
				{take(10*ms, 0, on(0), newest), give(1600*ms, 0)},
				{take(20*ms, 1, on(0), newest), give(1600*ms, 1)},
			},
		},
	}
}

// keyScenarios are about requests that are sent again.
func keyScenarios() []scenario {
	return []scenario{
		{
			name: "retry-with-a-key", faults: []string{crashAfter, still},
			clients: [][]step{
				{take(0, 0, on(0), key("k")), give(40*ms, 1)},
				{take(0, 1, on(0)), give(20*ms, 1)},
			},
		},
		{
			name: "key-that-was-given-up", faults: []string{still}, retry: 8 * time.Second,
			clients: [][]step{
				{take(0, 0, on(0), key("k"), lease(15*time.Second)), give(40*ms, 1)},
			},
		},
		{
			name: "key-at-both-replicas", faults: []string{leave, crashAfter},
			clients: [][]step{
				{takeAtBoth(10*ms, on(0), key("k")), give(40*ms, 0)},
				{take(0, 1, on(0)), give(20*ms, 1)},
			},
		},
		{
			name: "try-with-a-key-at-both", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{takeAtBoth(18*ms, on(0), key("k"), try), give(1600*ms, 1)},
			},
		},
		{
			name: "used-key", faults: []string{gap},
			clients: [][]step{
				{take(0, 0, on(0), key("k")), give(20*ms, 0), retake(20*ms, 1), retake(60*ms, 0)},
				{take(10*ms, 1, on(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "key-that-expires", faults: []string{gap}, expiryRecord: 50 * ms,
			clients: [][]step{
				{
					take(0, 0, on(0), key("k"), lease(2*time.Second)), retake(2010*ms, 1), retake(0, 0),
					give(3*time.Second, 1),
				},
			},
		},
	}
}

// waitScenarios are about decisions of one replica that another one has overtaken.
func waitScenarios() []scenario {
	return []scenario{
		{
			name: "release-revoke-expiry", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(3950*ms, 0)},
				{expel(3950*ms, 1)},
				{take(50*ms, 1, on(0))},
			},
		},
		{
			name: "release-against-expiry", faults: []string{crashAfter},
			clients: [][]step{
				{take(0, 0, on(0), lease(2*time.Second)), give(1200*ms, 0)},
				{take(50*ms, 1, on(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "renewal-against-expiry", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), keep(3900*ms, 1), keep(3950*ms, 0)},
				{take(50*ms, 0, on(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "try-against-release", faults: []string{gap},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(18*ms, 1, on(0), try), give(1600*ms, 1)},
				{take(20*ms, 0, on(0), try), give(1600*ms, 1)},
			},
		},
		{
			name: "time-out-against-release", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(1005*ms, 0)},
				{take(5*ms, 1, on(0), waits(time.Second)), give(1600*ms, 1)},
				{take(10*ms, 0, on(0)), give(1600*ms, 0)},
			},
		},
		{
			name: "time-out-of-a-key-at-both", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(1005*ms, 0)},
				{takeAtBoth(5*ms, on(0), key("k"), waits(time.Second)), give(3*time.Second, 1)},
			},
		},
		{
			name: "hang-up-at-the-grant", faults: []string{leave, crashAfter},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(10*ms, 1, on(0), key("k")), give(1600*ms, 1)},
			},
		},
		{
			name: "hang-up-while-it-is-written", faults: []string{leave},
			clients: [][]step{
				{take(0, 0, on(0), lease(time.Minute)), give(20*ms, 0)},
				{take(10*ms, 1, on(0), lease(time.Minute)), give(1600*ms, 1)},
			},
		},
		{
			name: "revoked-before-the-answer", faults: []string{crashAfter},
			clients: [][]step{
				{take(0, 0, on(0)), give(2*time.Second, 1)},
				{expel(500*ms, 1)},
			},
		},
		{
			name: "wait-goes-on-elsewhere", faults: []string{still},
			clients: [][]step{
				{take(0, 0, on(0)), give(1010*ms, 0)},
				{take(5*ms, 0, on(0), pollsAfter(time.Second)), wait(0, 1), give(1600*ms, 1)},
			},
		},
		{
			name: "deadlock-at-two-replicas", faults: []string{leave},
			clients: [][]step{
				{take(0, 0, on(0), named), take(20*ms, 0, on(1), named), give(1600*ms, 0), give(1600*ms, 0)},
				{take(0, 1, on(1), named), take(20*ms, 1, on(0), named), give(1600*ms, 1), give(1600*ms, 1)},
			},
		},
		{
			name: "async-entry-without-its-keeper", faults: []string{crashBefore, crashAfter, still},
			length: 30 * time.Second,
			clients: [][]step{
				{take(0, 0, on(0), lease(20*time.Second)), give(12*time.Second, 0)},
				{take(10*ms, 1, on(0), async, waits(25*time.Second)), wait(11900*ms, 0), give(1600*ms, 1)},
			},
		},
		{
			name: "drain-at-the-grant", faults: []string{draining},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(10*ms, 1, on(0), key("k")), give(1600*ms, 1)},
			},
		},
	}
}

// storeScenarios are about what happens to the store.
func storeScenarios() []scenario {
	return []scenario{
		{
			name: "restore-of-a-holder", faults: []string{restoring}, copyAt: 15 * ms,
			clients: [][]step{
				{take(0, 0, on(0)), give(30*ms, 0)},
				{take(20*ms, 1, on(0)), keep(50*ms, 0), give(60*ms, 1)},
			},
		},
		{
			name: "restore-of-a-key", faults: []string{restoring}, copyAt: 5 * ms,
			clients: [][]step{
				{take(10*ms, 0, on(0), key("k")), give(30*ms, 0), retake(40*ms, 1)},
				{take(20*ms, 1, on(0)), give(1600*ms, 1)},
			},
		},
		{
			name: "restore-of-a-pool", faults: []string{restoring}, copyAt: 15 * ms,
			clients: [][]step{
				{take(0, 0, on(0)), give(30*ms, 0)},
				{take(10*ms, 1, anyOf(0, 1)), give(40*ms, 1)},
			},
		},
		{
			name: "closure-against-join", faults: []string{closing, still}, closures: true,
			clients: [][]step{
				{take(0, 0, on(1)), give(20*ms, 0)},
				{take(10*ms, 1, on(1)), give(1600*ms, 1)},
			},
		},
		{
			name: "gap-of-the-feed", faults: []string{gap, crashAfter},
			clients: [][]step{
				{take(0, 0, on(0)), give(20*ms, 0)},
				{take(10*ms, 1, on(0)), give(1600*ms, 1)},
				{take(15*ms, 0, on(0)), give(1600*ms, 0)},
			},
		},
	}
}

// callbackScenarios are about what is sent. Replica 1 owns the shard when they begin.
func callbackScenarios() []scenario {
	first := 8 * time.Second
	callback := func(name string, faults ...string) scenario {
		return scenario{
			name: name, webhooks: true, faults: faults, length: 35 * time.Second, from: first,
			clients: [][]step{
				{take(first, 1, on(0), lease(20*time.Second)), give(first+20*ms, 1)},
				{take(first+10*ms, 0, on(0), calledBack(1), waits(20*time.Second))},
			},
		}
	}
	two := callback("callbacks-of-one-transaction", crashAfter)
	two.clients = [][]step{
		{take(first, 0, on(0), calledBack(0), waits(20*time.Second))},
		{take(first, 1, on(1), calledBack(1), waits(20*time.Second))},
	}
	late := callback("callback-beside-a-subscription", gap)
	late.subscribeAt = time.Second + first + 15*ms
	return []scenario{
		late,
		callback("callback-at-an-owner-change", mute, crashAfter),
		callback("callback-after-a-gap", gap, still),
		callback("callback-and-a-drained-owner", draining),
		two,
	}
}
