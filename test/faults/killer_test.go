package faults_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

// killer kills replicas that send webhooks.
type killer struct {
	*stand
	receivers   *receivers
	newest      *atomic.Uint64         // a number that the store has
	known       map[*rig.Replica]int64 // how much of its log was read
	owner       map[string]owned       // by shard
	single, all int                    // kills of one that sent, and of all of them when one did
}

func newKiller(s *stand, r *receivers, newest *atomic.Uint64) *killer {
	return &killer{
		stand: s, receivers: r, newest: newest, known: map[*rig.Replica]int64{},
		owner: map[string]owned{},
	}
}

// round kills a replica that sends, or all of them, and starts them again. It waits for that until
// something was sent since the last time.
func (k *killer) round(all bool) {
	k.t.Helper()
	victims := []*rig.Replica{k.sender()}
	if all {
		victims = k.replicas
	}
	k.receivers.disturb()
	var killing sync.WaitGroup
	for _, v := range victims {
		killing.Go(func() { k.must(v.Kill()) })
	}
	killing.Wait()
	if all {
		k.all++
	} else {
		k.single++
	}
	pause(k.ctx, time.Duration(rand.N(2000))*time.Millisecond)
	for _, v := range victims {
		k.buried(v)
		k.must(v.Restart(k.ctx))
	}
	poll.Within(k.t, 2*time.Minute, "every shard to have an owner", func() bool {
		return len(k.owners()) == shards
	})
	k.receivers.rest(k.newest.Load())
	pause(k.ctx, time.Duration(1000+rand.N(3000))*time.Millisecond)
}

// sender returns a replica that has a shard, once something was sent since now: a replica with
// more shards than others.
func (k *killer) sender() (v *rig.Replica) {
	k.t.Helper()
	before := k.receivers.messages()
	poll.Within(k.t, 2*time.Minute, "somebody to send webhooks", func() bool {
		v = nil
		has, most := map[*rig.Replica]int{}, 0
		for _, o := range k.owners() {
			if has[o.by]++; has[o.by] > most || has[o.by] == most && rand.N(2) == 0 {
				v, most = o.by, has[o.by]
			}
		}
		return v != nil && k.receivers.messages() > before
	})
	return v
}

const shards = 8

// owned is the owner of a shard, by the fence of its lock.
type owned struct {
	by    *rig.Replica
	fence uint64
}

// owners returns the owner of each shard among the running replicas: the newest grant of its
// lock.
func (k *killer) owners() map[string]owned {
	for _, r := range k.replicas {
		text := k.news(r)
		for line := range bytes.Lines(text) {
			var says struct {
				Shard string
				Fence uint64
			}
			if bytes.Contains(line, []byte(`"this replica sends webhooks"`)) &&
				json.Unmarshal(line, &says) == nil && says.Fence > k.owner[says.Shard].fence {
				k.owner[says.Shard] = owned{r, says.Fence}
			}
		}
	}
	return k.owner
}

// buried takes note that a replica is dead: it has no shard any more.
func (k *killer) buried(r *rig.Replica) {
	maps.DeleteFunc(k.owners(), func(_ string, o owned) bool { return o.by == r })
}

// news returns the lines that a replica has added to its log.
func (k *killer) news(r *rig.Replica) []byte {
	k.t.Helper()
	f, err := os.Open(r.Log())
	if err != nil {
		k.t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, k.known[r], math.MaxInt64-k.known[r]))
	k.must(err)
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	k.known[r] += int64(len(text))
	return text
}
