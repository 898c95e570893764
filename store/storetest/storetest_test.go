package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/storetest"
)

// minTTL is the shortest lease of a memory.
const minTTL = 500 * time.Millisecond

// bugVariable names the bug that the memory has. It is set only in the processes
// that TestSuiteCatchesBugs starts.
const bugVariable = "STORETEST_BUG"

// TestMemory shows that a correct store passes.
func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		MinTTL: minTTL, Late: time.Second, CallLimit: 2 * time.Second,
		NoFloor: "it has no fence floor", NoBackup: "it has no data to copy",
		NoBound: "a write is a call of a function",
		Open:    func(t *testing.T) storetest.Store { return open(t, bug(os.Getenv(bugVariable))) },
	})
}

func open(t *testing.T, b bug) storetest.Store {
	m := newMemory(b)
	t.Cleanup(m.Close)
	second := newClient(m, true)
	return storetest.Store{
		A: newClient(m, false), B: second,
		Reopen: func(*testing.T) store.Store {
			m.reopened()
			return newClient(m, false)
		},
		CutB: func(_ *testing.T, how storetest.Fault) func() {
			second.setFault(how)
			return func() { second.setFault("") }
		},
		Compact: func(*testing.T) { m.compacted() },
	}
}

// caught lists each bug with a case that must fail because of it.
func caught() map[bug]string {
	return map[bug]string{
		startsOver:          "fence/grows over a reopening",
		compactionForgets:   "fence/grows over a compaction",
		setRetriedTwice:     "sets/a retry joins its first attempt",
		largeSetCut:         "sets/the largest that is allowed",
		lateWrite:           "contexts/one that ends meanwhile hurts nobody else",
		emptyIsError:        "read/a lock that nobody wants",
		viewLacksNewest:     "feed/a late follower sees the same",
		viewIsOnePage:       "feed/more entries than fit a page",
		feedHalvesSets:      "exclusion/no two holders, fences grow, nobody is forgotten",
		feedStops:           "feed/goes on over a compaction",
		lostUntold:          "cut/broken/the feed says so and starts over",
		twins:               "order/thousands on one lock",
		outOfOrder:          "order/many locks and sets",
		numbersPerQueue:     "fence/grows from holder to holder",
		numbersOverflow:     "enqueue/returns the entry with its number",
		retryMovesBack:      "enqueue/a retry joins its first attempt",
		retryOverwrites:     "enqueue/a retry joins its first attempt",
		retryWrote:          "enqueue/written tells who wrote",
		keyUsedTwice:        "enqueue/a used-up key is refused with its reason",
		keyCheckedApart:     "enqueue/late duplicates of a key find it used up",
		keyForgetsExpiry:    "enqueue/the key of an entry that expired is used up",
		withdrawnUsesUp:     "enqueue/the key of a withdrawn entry is free",
		keyPerLock:          "enqueue/a key is one entry whatever its locks are",
		retryWritesAgain:    "enqueue/one id through two clients at once",
		metadataLost:        "enqueue/every field survives",
		ttlTruncated:        "expiry/neither early nor late",
		setInFirstOnly:      "sets/in all queues at one number, and out of all at once",
		setStays:            "sets/in all queues at one number, and out of all at once",
		tenantsShareIDs:     "tenants/one id in two tenants",
		namesByPrefix:       "tenants/names that resemble each other are apart",
		ignoresContext:      "contexts/one that has ended does nothing",
		alwaysAmbiguous:     "contexts/one that has ended does nothing",
		givenUpStays:        "cut/deaf/what was given up is taken back",
		neverAmbiguous:      "cut/deaf/no outcome is misreported",
		bareErrors:          "remove/a repetition is lost and changes nothing",
		hangs:               "cut/silent/calls end in time",
		brokenCallsSucceed:  "cut/broken/calls end in time",
		distrustIgnored:     "distrust/no new entries, the old ones go on",
		distrustStaysLocal:  "distrust/no new entries, the old ones go on",
		distrustUntold:      "distrust/no new entries, the old ones go on",
		distrustStopsAll:    "distrust/no new entries, the old ones go on",
		expiresEarly:        "expiry/neither early nor late",
		neverExpires:        "expiry/neither early nor late",
		expiryLooksReleased: "expiry/neither early nor late",
		refreshForgets:      "refresh/extends the lease",
		refreshTrustsLease:  "refresh/is lost after a removal",
		remainsForEver:      "refresh/tells how much remains",
		remainsWhenGone:     "refresh/tells how much remains",
		leasesShared:        "expiry/entries do not share a lease",
		leaseInherited:      "refresh/a gone entry's keeps no other tenant's alive",
		leaseUsedUp:         "expiry/a new entry has a whole lease",
		ignoresWhile:        "remove/only while what it was decided by is there",
		removesTheHead:      "remove/takes the entry and no other",
		removesByID:         "remove/a later entry with the same id survives",
		removesForeign:      "remove/takes the entry and no other",
		lostIsSuccess:       "remove/of many at once one succeeds",
		lostSpreads:         "remove/a lost one costs none beside it",
		lostIsRemembered:    "remove/a repetition is lost and changes nothing",
		lostHasReason:       "refresh/is lost after a removal",
		reasonLost:          "remove/the reason reaches both feeds",
		endsForgotten:       "remove/ends are remembered",
		withdrawnExpires:    "remove/a withdrawal is told and not remembered",
		withdrawnRemembered: "remove/a withdrawal is told and not remembered",
		readsThePast:        "read/each client sees what the other has done",
		newestIsOld:         "read/the newest number is never behind",
		feedStartsEmpty:     "feed/ends with its context and can start again",
		feedSkips:           "feed/every change once and in order",
		feedRepeats:         "feed/every change once and in order",
		feedDisordered:      "feed/every change once and in order",
		feedHasSeam:         "feed/nothing is lost between the view and what follows",
		feedGapUnnoticed:    "cut/silent/the feed says so and starts over",
		feedConcurrent:      "feed/every change once and in order",
		followNeverEnds:     "feed/ends with its context and can start again",
	}
}

// TestSuiteCatchesBugs runs one case in a process of its own for each bug. The
// process must fail, because of that case. Most of the time they wait, so that
// many can run at once.
func TestSuiteCatchesBugs(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, 8)
	for b, name := range caught() {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			checkCaught(t, binary, b, name)
		})
	}
}

func checkCaught(t *testing.T, binary string, b bug, name string) {
	test := "TestMemory/" + strings.ReplaceAll(name, " ", "_")
	output, err := runBroken(t.Context(), binary, b, test)
	failed := slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: "+test+" ")
	})
	if err == nil || !failed {
		t.Errorf("%q passes although %s: %v\n%s", name, b, err, output)
	}
	t.Logf("%s:\n%s", b, output)
}

// runBroken runs one test of this binary with a bug.
func runBroken(ctx context.Context, binary string, b bug, test string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	exactly := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	cmd := exec.CommandContext(ctx, binary, "-test.run", exactly, "-test.v", "-test.timeout=50s")
	cmd.Env = append(os.Environ(), bugVariable+"="+string(b))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
