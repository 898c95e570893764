package row

import "context"

const (
	manyClients = 128
	members     = 3 // of each cluster in S13
)

const fifoNote = "The history of every round was checked: no two clients had the lock at once, " +
	"the fence, which is the place in the queue, grew from each grant to the next, and no request was granted before one that was sent " +
	"five rounds of the queue ahead of it."

// throughput is a row that compares cycles per second.
type throughput struct {
	id, what     string
	ours, theirs starter
	atLeast      float64 // the ratio
	notes        []string
}

func (t throughput) run(ctx context.Context, b *bench) ([]Outcome, error) {
	c, err := b.duel(ctx, t.ours, t.theirs)
	if err != nil {
		return nil, err
	}
	o := c.outcome(t.id, t.what, t.atLeast)
	o.Notes = append(t.notes, c.disturbance()...)
	return []Outcome{o}, nil
}

func s1() throughput {
	return throughput{
		id: "S1", what: "uncontended, 128 clients, against `v3lock` over HTTP, a lease each", atLeast: 14,
		ours: fencepost(embedded, manyClients), theirs: v3lock(1, manyClients),
	}
}

func s2() throughput {
	return throughput{
		id: "S2", what: "uncontended, 128 clients, against `concurrency.Mutex`, shared session", atLeast: 2,
		ours: fencepost(embedded, manyClients), theirs: mutex(1, manyClients),
	}
}

func s3() throughput {
	return throughput{
		id: "S3", what: "uncontended, 128 clients, against two empty answers of gin", atLeast: 0.55,
		ours: fencepost(embedded, manyClients), theirs: empty(manyClients),
	}
}

func s4() throughput {
	return throughput{
		id: "S4", what: "one client, against `v3lock` over HTTP, a lease each", atLeast: 3.5,
		ours: fencepost(embedded, 1), theirs: v3lock(1, 1),
	}
}

func s5() throughput {
	return throughput{
		id: "S5", what: "32 clients on one lock, against `concurrency.Mutex`", atLeast: 5,
		ours: fencepostQueue(embedded), theirs: mutexQueue(1), notes: []string{fifoNote},
	}
}

// runS13 repeats S1, S2 and S5 with the state of both sides on three members,
// each side on a cluster of its own.
func runS13(ctx context.Context, b *bench) ([]Outcome, error) {
	parts := []throughput{
		{
			id: "S13", what: "S1 on a cluster of three", atLeast: 10,
			ours: fencepost(members, manyClients), theirs: v3lock(members, manyClients),
		},
		{
			id: "S13", what: "S2 on a cluster of three", atLeast: 1.4,
			ours: fencepost(members, manyClients), theirs: mutex(members, manyClients),
		},
		{
			id: "S13", what: "S5 on a cluster of three", atLeast: 1.5,
			ours: fencepostQueue(members), theirs: mutexQueue(members), notes: []string{fifoNote},
		},
	}
	var outcomes []Outcome
	for _, part := range parts {
		o, err := part.run(ctx, b)
		outcomes = append(outcomes, o...)
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}
