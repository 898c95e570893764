package outbox

import (
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
)

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = silent{}
	}
	if c.Charge == nil {
		c.Charge = func(string, Cost) {}
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bounds of what one shard keeps of what is not delivered yet.
const (
	// What happens at some hundred locks a second while a shard has no owner is told at
	// once when it is taken over, and has to find room.
	maxOfTarget = 3000    // deliveries of a subscription, or of a tenant's callbacks
	bytesTarget = 4 << 20 // and their payloads
	maxOfTenant = 5000
	maxInAll    = 50_000
	bytesInAll  = 64 << 20
	share       = 8 // so many times what a tenant has is free when it is given more

	// maxWindow is how many events may be neither delivered nor kept yet: no more are
	// read meanwhile. windowShare times what a tenant has in it is free when it is given more, so that a shard waits for
	// no tenants whose deliveries wait to be kept.
	maxWindow   = 20_000
	windowShare = 4
)

// How much of how targets do a shard's owner writes in a second: there may be 10 000 targets that all have changed,
// each with up to 64 KiB of what it was sent last.
const (
	statesInAll        = 16
	stateBytesInAll    = 256 << 10
	statesOfTenant     = 4
	stateBytesOfTenant = 32 << 10
)

// SettledAfter is for how long a replica should have run that sends. One that took over
// sooner might know less than the one before had still to tell: the cursor is some seconds
// behind, and the shard's lock free only some seconds after who had it is gone.
const SettledAfter = 20 * time.Second

// Times of a shard's work.
const (
	tick = 250 * time.Millisecond

	// keepAfter is how long an attempt may take before what it delivers is kept in the
	// store, so that the cursor goes on.
	keepAfter = 2 * time.Second

	cursorPause = 500 * time.Millisecond // between two writes of a cursor behind deliveries
	idlePause   = 2 * time.Second        // behind events that concern nobody
	statePause  = 5 * time.Second        // between two writes of a target's state

	// finishTime is how long what is under way may take when a shard is given up.
	// It is quiet when nothing more has happened for quietTime.
	finishTime = 2 * time.Second
	quietTime  = 50 * time.Millisecond

	backlogPause = 2 * time.Second // between two looks at what is pending

	// busyTime is how long after an answer a receiver still counts as one that has an attempt before it:
	// the next one begins in a moment.
	busyTime = 2 * time.Second

	// silentTime is how long after its last look at what is pending an owner counts as stuck.
	silentTime = 10 * time.Second

	retryPause = time.Second // after a write that failed, or a pool that is full

	// callTimeout is for a call of the store.
	callTimeout = 5 * time.Second

	// writesAtOnce bounds a shard's calls of the store.
	writesAtOnce = 16

	// warnPause is the time between two lines of the log that say that a target has too much before it.
	warnPause = time.Minute

	// flushPause is the time between two times that a target is told that it misses something, or more of it.
	flushPause = 2 * time.Second

	// missedPause is how long after an attempt to tell a receiver what it misses the next one is
	// made, if it takes other deliveries meanwhile.
	missedPause = time.Minute

	// pausedLook is how often deliveries of a target look whether it is sent something again.
	pausedLook = 5 * time.Second

	// orphanTime is for how long what is owed to a subscription is left alone that nobody
	// knows: one that was made just now is known soon.
	orphanTime = time.Minute

	// secretTime is for how long a callback waits for this replica to learn of the tenant's secret: whoever
	// makes the first one may have a lock granted right then, at another replica.
	secretTime = 10 * time.Second

	// payloadTime is for how long a payload is kept in memory that is in the store as well.
	payloadTime = 30 * time.Second

	// maxWait is the longest time to the next attempt: the schedule's last step, and a fifth.
	maxWait = 29 * time.Hour

	// maxAge is how long a delivery is kept at most: somewhat more than the schedule takes,
	// for a receiver that is paused or disabled meanwhile. What tells that something is missed stays.
	maxAge = 5 * 24 * time.Hour
)

// What a shard keeps is in records of kinds of its own.
func owedKind(shard string) string    { return "webhook-owed-" + suffix(shard) }    // deliveries that are to be tried again
func stateKind(shard string) string   { return "webhook-state-" + suffix(shard) }   // how targets do
func requestKind(shard string) string { return "webhook-request-" + suffix(shard) } // what tenants ask of its owner

func suffix(shard string) string { return strings.TrimPrefix(shard, shardPrefix) }

// shardOf returns where what has the name belongs.
func shardOf(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return shardName(int(h.Sum32() % shards))
}
