package outbox

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// shards is the number of parts of the work. It is part of what is stored: with another number,
// records would belong to other shards.
const shards = 8

// shardPrefix begins the names of shards, which are the names of their locks.
const shardPrefix = "webhooks:"

func shardName(i int) string { return fmt.Sprint(shardPrefix, i) }

// Bounds of one shard. Above them a subscription gets events.missed, and a callback's record
// says failed.
const (
	maxOfTarget = 3000 // deliveries of a subscription, or of a tenant's callbacks
	maxInAll    = 50_000
	bytesInAll  = 32 << 20

	// Callbacks that wait for space: of a tenant, and in all. Each takes 350 bytes.
	maxWaiting      = 25_000
	maxWaitingInAll = 50_000

	// share times what a tenant has must be free for it to get more, so that some tenants whose
	// receivers are gone leave space for others.
	share = 8

	// maxWindow bounds the events that are read and not settled: the owner reads no more then. It
	// is less than maxOfTarget, so that a receiver that keeps up misses nothing after a take-over.
	maxWindow = 2000

	maxRequests = 100 // of a tenant that wait in a shard
	maxRecent   = 50  // deliveries that are shown after their end: some 50 KiB at most
	maxAttempts = 5   // of a delivery that are shown

	attemptsAtOnce = 4  // for one receiver
	statesAtOnce   = 4  // states that are written in a tick
	writesAtOnce   = 16 // calls of the store
)

const (
	tick         = 250 * time.Millisecond
	keepAfter    = 2 * time.Second        // an attempt that takes longer is written as pending
	cursorPause  = 500 * time.Millisecond // between writes of a cursor after deliveries
	idlePause    = 2 * time.Second        // and after events without deliveries
	statePause   = 5 * time.Second        // between writes of one state
	finishTime   = 2 * time.Second        // for what is under way when a shard is given up
	quietTime    = 50 * time.Millisecond  // without news ends that earlier
	retryPause   = time.Second            // after a write that failed, or when the pool is full
	callTimeout  = 5 * time.Second        // of a call of the store
	flushPause   = 2 * time.Second        // between writes of what one subscription misses
	missedPause  = time.Minute            // between attempts of that while other deliveries succeed
	skippedPause = time.Minute            // between log lines about callbacks that were not sent
	silentTime   = 10 * time.Second       // an owner without a beat for so long counts as stuck
	orphanTime   = time.Minute            // until an unknown subscription counts as deleted
	requestLook  = 30 * time.Second       // between looks for requests without a notification
	maxQuiet     = time.Hour              // the longest Retry-After for a whole receiver

	// secretTime is how long a callback waits for the tenant's first secret to be known here.
	secretTime = 10 * time.Second

	// maxWait bounds the time to the next attempt: the schedule's last step and a fifth. The clock
	// of the replica that wrote it may be wrong.
	maxWait = 29 * time.Hour

	// maxAge is how long a delivery waits at most, for a receiver that is paused or disabled.
	maxAge = 5 * 24 * time.Hour
)

// cursorKind is the kind of the cursors of all shards; the other kinds are one for each shard.
const cursorKind = "webhook-cursor"

func pendingKind(shard string) string { return kindOf("owed", shard) }    // pending deliveries
func stateKind(shard string) string   { return kindOf("state", shard) }   // health, recent ones
func requestKind(shard string) string { return kindOf("request", shard) } // tests, redeliveries

func kindOf(what, shard string) string {
	return "webhook-" + what + "-" + strings.TrimPrefix(shard, shardPrefix)
}

// shardOf returns the shard of a name.
func shardOf(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return shardName(int(h.Sum32() % shards))
}

// shardOfTarget returns the shard of a subscription, or of a tenant's callbacks.
func shardOfTarget(tenant, id string) string {
	if id == Callbacks {
		return shardOf(tenant)
	}
	return shardOf(id)
}
