package zookeeper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// story keeps what a feed tells.
type story struct {
	mu   sync.Mutex
	text []string
	upTo uint64
	gaps int
	lost int
}

func (f *story) Reset(s store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.upTo != 0 && s.Number != f.upTo {
		f.gaps++
	}
	f.text, f.upTo = append(f.text, fmt.Sprint("begins with ", len(s.Entries))), s.Number
}

func (f *story) Apply(upTo uint64, changes []store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.upTo = upTo
	for _, c := range changes {
		if c.Joined != nil {
			f.text = append(f.text, "joined "+c.Joined.Name())
		} else {
			f.text = append(f.text, "left "+string(c.Reason))
		}
	}
}

func (f *story) Recall([]store.Ended, bool) {}

func (f *story) Lost(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
}

func (f *story) state() (text []string, upTo uint64, gaps, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.text), f.upTo, f.gaps, f.lost
}

// interrupted is a store whose feed is interrupted, and another replica, which writes.
type interrupted struct {
	*testing.T
	z        *rig.ZooKeeper
	s, other *zookeeper.Store
	told     *story
	client   *zk.Conn
}

// interrupt begins with a feed that has seen an entry come.
func interrupt(t *testing.T) *interrupted {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	i := &interrupted{
		T: t, z: z, told: &story{}, client: hand(t, z),
		s:     open(t, zookeeper.Config{Servers: z.Endpoints()}),
		other: open(t, zookeeper.Config{Servers: z.Endpoints()}),
	}
	follow(t, i.other)
	i.follow()
	i.enqueue("first")
	i.catchUp()
	return i
}

// follow has the feed begin.
func (i *interrupted) follow() {
	i.Helper()
	ctx, cancel := context.WithCancel(i.Context())
	var following sync.WaitGroup
	s, told := i.s, i.told
	following.Go(func() { s.Watch(ctx, told) })
	i.Cleanup(func() { cancel(); following.Wait() })
	within(
		i.T,
		time.Minute,
		"the feed begins",
		func() bool { text, _, _, _ := told.state(); return len(text) > 0 },
	)
}

// replaceFirst puts another record into the place of the first one.
func (i *interrupted) replaceFirst() {
	i.Helper()
	const record = "/fencepost/v1/logs/0000000000/0000000000"
	data, _, err := i.client.Get(record)
	if err == nil {
		_, err = i.client.Set(
			record, []byte(strings.Replace(string(data), `"id":"ID`, `"id":"IX`, 1)), -1,
		)
	}
	if err != nil {
		i.Fatal(err)
	}
}

func (i *interrupted) enqueue(name string) *lock.Entry {
	i.Helper()
	return take(i.T, i.other, draft(name))
}

// catchUp waits for the feed to tell all that there is.
func (i *interrupted) catchUp() {
	i.Helper()
	newest, err := i.other.Newest(i.Context())
	if err != nil {
		i.Fatal(err)
	}
	within(
		i.T,
		20*time.Second,
		"the feed has everything",
		func() bool { _, upTo, _, _ := i.told.state(); return upTo >= newest },
	)
}

// hold interrupts the feed until release is called.
func (i *interrupted) hold() (release func()) {
	i.Helper()
	_, _, _, before := i.told.state()
	release = i.s.HoldFeed()
	within(
		i.T,
		20*time.Second,
		"the feed is interrupted",
		func() bool { _, _, _, lost := i.told.state(); return lost > before },
	)
	return release
}

func (i *interrupted) wantGaps(want int) {
	i.Helper()
	i.catchUp()
	if text, _, gaps, _ := i.told.state(); gaps != want {
		i.Fatalf("there are %d gaps, want %d: %q", gaps, want, text)
	}
}

// TestInterruptedFeedGoesOn: a feed that is interrupted, also while it is behind, tells each
// change once.
func TestInterruptedFeedGoesOn(t *testing.T) {
	t.Parallel()
	i := interrupt(t)
	release := i.hold()
	second := i.enqueue("second")
	release()
	i.catchUp()
	release = i.hold()
	if err := i.other.Remove(t.Context(), second, lock.Released); err != nil {
		t.Fatal(err)
	}
	release()
	i.wantGaps(0)
	want := []string{
		"begins with 0", "joined first", "begins with 1", "joined second", "begins with 2",
		"left released",
	}
	if text, _, _, _ := i.told.state(); !slices.Equal(text, want) {
		t.Errorf("told %q, want %q", text, want)
	}
}

// TestInterruptedAndFolded: a feed resumes after folded records, but not before them.
func TestInterruptedAndFolded(t *testing.T) {
	t.Parallel()
	i := interrupt(t)
	folded(t, i.other, i.client)
	i.catchUp()
	release := i.hold()
	i.enqueue("second")
	release()
	i.wantGaps(0)
	release = i.hold()
	i.enqueue("third")
	folded(t, i.other, i.client)
	release()
	i.wantGaps(1)
}

// TestInterruptedInAnotherPast: a feed begins at the present if the log has another record in the
// place of the last reported one, as after a restore, and under another floor.
func TestInterruptedInAnotherPast(t *testing.T) {
	t.Parallel()
	i := interrupt(t)
	release := i.hold()
	i.replaceFirst()
	i.enqueue("second")
	release()
	i.wantGaps(1)
	release = i.hold()
	const floor = 1 << 40
	i.other = open(t, zookeeper.Config{Servers: i.z.Endpoints(), FenceFloor: floor})
	i.enqueue("third")
	release()
	i.wantGaps(2)
	i.hold()()
	i.enqueue("fourth")
	i.wantGaps(2)
}

// TestInterruptedBeforeItWasToldAny: a feed that began after all records, and has reported none,
// knows the last record of then. It resumes only if the log still has that record there, folded
// or not.
func TestInterruptedBeforeItWasToldAny(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		folded, another bool
		gaps            int
	}{"the same": {}, "another": {another: true, gaps: 1}, "folded": {folded: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := interrupt(t)
			if c.folded {
				folded(t, i.other, i.client)
			}
			i.s, i.told = open(t, zookeeper.Config{Servers: i.z.Endpoints()}), &story{}
			i.follow()
			release := i.hold()
			if c.another {
				i.replaceFirst()
			}
			i.enqueue("second")
			release()
			i.wantGaps(c.gaps)
		})
	}
}

// TestInterruptedBehindWhatCannotBeRead: a feed that has begun behind a record which cannot be read
// does not take what was folded before that for the last one: it goes on when the record is folded,
// too.
func TestInterruptedBehindWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	i := interrupt(t)
	folded(t, i.other, i.client)
	i.enqueue("damaged")
	if _, err := i.client.Set(
		"/fencepost/v1/logs/0000000000/0000000001", []byte("{"), -1,
	); err != nil {
		t.Fatal(err)
	}
	i.s, i.told = open(t, zookeeper.Config{Servers: i.z.Endpoints()}), &story{}
	i.follow()
	folded(t, i.other, i.client)
	release := i.hold()
	i.enqueue("second")
	release()
	i.wantGaps(0)
}
