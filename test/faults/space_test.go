package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// smallQuota is the size at which the members of a cluster take nothing more.
const smallQuota = 16 << 20

// TestF13OutOfSpace makes another client fill a cluster of etcd until it raises its alarm.
// Acquires fail for certain; holders renew, holders release, and waiters are granted. After an
// operator has made space and cleared the alarm, the server grants locks again. The embedded
// store never gets there: TestFullAtItsQuota.
func TestF13OutOfSpace(t *testing.T) {
	s := newSmallStand(t)
	kept, left := s.holdEach("kept", 5*time.Minute), s.holdEach("left", 5*time.Minute)
	waiting := s.waitEach("left")
	client, err := s.cluster.(drive.Etcd).Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := fillEtcd(s.ctx, client); err != nil {
		t.Fatal(err)
	}
	full := s.history.Now()
	var slowest longest
	s.each(func(c *drive.Client) {
		for end := s.history.Now() + time.Duration(count(3, 60))*
			time.Second; s.history.Now() < end; pause(s.ctx, 200*time.Millisecond) {
			s.noRoom(c, &slowest)
			if outcome := c.Renew(s.ctx, c.Number, kept[c.Number]); outcome != history.OK {
				t.Errorf("kept:%d without room: renew is %s", c.Number, outcome)
			}
		}
		if outcome := c.Release(s.ctx, c.Number, 3, left[c.Number]); outcome != history.OK {
			t.Errorf("left:%d without room: release is %s", c.Number, outcome)
		}
	})
	for i, h := range waiting() {
		if h == nil {
			t.Errorf("left:%d: who waited is not granted the lock without room", i)
		} else if outcome := s.clients[i].Release(s.ctx, i, 3, h); outcome != history.OK {
			t.Errorf("left:%d: who waited releases: %s", i, outcome)
		}
	}
	t.Logf(
		"without room for %v; slowest word of that: %v", (s.history.Now() - full).Round(time.Millisecond),
		&slowest,
	)
	if err := makeRoom(s.ctx, client); err != nil {
		t.Fatal(err)
	}
	s.each(func(c *drive.Client) { s.goesOn(c, kept[c.Number]) })
	s.judge()
}

// newSmallStand has etcd for a store, whatever the run is about: ZooKeeper has no quota.
func newSmallStand(t *testing.T) *stand {
	t.Helper()
	s := newClusterOf(
		t,
		10*time.Minute,
		func(ctx context.Context, dir, _ string) (drive.Cluster, error) {
			binary, err := rig.BuildEtcd(ctx)
			if err != nil {
				return nil, err
			}
			e, err := rig.StartEtcd(
				ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: binary, QuotaBytes: smallQuota},
			)
			return drive.Etcd{Etcd: e}, err
		},
	)
	s.serve()
	return s
}

// waitEach has each client wait for the lock of that name, and returns what waits for the outcomes.
func (s *stand) waitEach(name string) (outcomes func() []*drive.Hold) {
	s.t.Helper()
	holds := make([]*drive.Hold, clients)
	var waiting sync.WaitGroup
	for _, c := range s.clients {
		waiting.Go(func() {
			holds[c.Number], _ = c.Acquire(s.ctx, drive.Request{
				Lock: fmt.Sprint(name, ":", c.Number), TTL: 5 * time.Minute, Wait: 4 * time.Minute,
				Replica: c.Number + 1, Key: fmt.Sprint("waits-", c.Number), Attempts: 100,
			})
		})
	}
	for _, c := range s.clients {
		if _, err := s.store.AwaitQueue(s.ctx, fmt.Sprint(name, ":", c.Number), 2); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() []*drive.Hold {
		waiting.Wait()
		return holds
	}
}

// noRoom checks that an acquire is refused, that nothing was written, and that this is said in
// time.
func (s *stand) noRoom(c *drive.Client, slowest *longest) {
	s.t.Helper()
	r := drive.Request{
		Lock: fmt.Sprint("new:", c.Number, ":", s.history.Now().Milliseconds()), TTL: 10 * time.Second,
		Replica: c.Number,
	}
	a := c.Post(s.ctx, c.Number, r)
	c.Record(history.Acquire, drive.HoldOf(r, a), a)
	slowest.add(a.Return - a.Call)
	certain := a.Problem.MayHaveTakenEffect != nil && !*a.Problem.MayHaveTakenEffect
	if a.Status != http.StatusServiceUnavailable ||
		!strings.Contains(a.Problem.Detail, "out of space") || !certain ||
		a.Header.Get("Retry-After") == "" {
		s.t.Errorf(
			"acquire of client %d without room: %v, want 503 for certain, with Retry-After", c.Number, a,
		)
	}
	if took := a.Return - a.Call; took > within(toldOfOutage) {
		s.t.Errorf("client %d was told after %v, want at most %v", c.Number, took, within(toldOfOutage))
	}
}

// fillEtcd writes values outside the store's prefix, until etcd accepts no more, however small.
func fillEtcd(ctx context.Context, client *clientv3.Client) error {
	for i, size := 0, 512<<10; ; i++ {
		_, err := client.Put(ctx, fmt.Sprint("/elsewhere/", i), strings.Repeat("x", size))
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace) && size == 1:
			return nil
		case errors.Is(err, rpctypes.ErrNoSpace):
			size = 1 // the alarm is on
		case err != nil:
			return err
		}
	}
}

// makeRoom does what docs/operate/stores.md says of an etcd that is out of space.
func makeRoom(ctx context.Context, client *clientv3.Client) error {
	deleted, err := client.Delete(ctx, "/elsewhere/", clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("delete what fills etcd: %w", err)
	}
	if _, err := client.Compact(
		ctx, deleted.Header.Revision, clientv3.WithCompactPhysical(),
	); err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	for _, member := range client.Endpoints() {
		if _, err := client.Defragment(ctx, member); err != nil {
			return fmt.Errorf("defragment a member of etcd: %w", err)
		}
	}
	alarms, err := client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list the alarms of etcd: %w", err)
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("clear the alarm of etcd: %w", err)
		}
	}
	return nil
}
