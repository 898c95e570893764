package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/store"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/test/faults/history"
)

// The layout in etcd: entries/<tenant>/<lock>/<id>, and ended/… with a list of
// ends, written in the transaction of the removals.
const (
	entriesDir = "/entries/"
	endedDir   = "/ended/"
	syncKey    = "/faults/sync"
)

// inEtcd observes by one watch on everything. Its positions are revisions.
type inEtcd struct {
	client *clientv3.Client
}

// ObserveEtcd starts observing the entries of tenant. The client is closed by Close.
func ObserveEtcd(
	ctx context.Context,
	client *clientv3.Client,
	tenant string,
	now func() time.Duration,
) (*Store, error) {
	resp, err := client.Get(ctx, syncKey)
	if err != nil {
		return nil, fmt.Errorf("observe etcd: %w", err)
	}
	return observe(ctx, &inEtcd{client}, resp.Header.Revision, tenant, now), nil
}

func (e *inEtcd) close() error { return e.client.Close() }

// run watches; the client resumes a broken watch by itself, a closed one is
// opened again where it ended.
func (e *inEtcd) run(ctx context.Context, s *Store) {
	for ctx.Err() == nil {
		watch := e.client.Watch(
			clientv3.WithRequireLeader(ctx), "", clientv3.WithPrefix(), clientv3.WithRev(s.position()+1),
		)
		for resp := range watch {
			if resp.CompactRevision != 0 {
				s.fail(fmt.Errorf("the store was compacted to %d before it was observed", resp.CompactRevision))
				return
			}
			if n := len(resp.Events); n > 0 {
				s.take(resp.Events[n-1].Kv.ModRevision, changesOf(resp.Events, s.tenant, s.now()))
			}
		}
		_ = store.Pause(ctx, 100*time.Millisecond)
	}
}

// changesOf translates a run of events. The removals of one transaction and the
// record of their reasons arrive in one run.
func changesOf(events []*clientv3.Event, tenant string, at time.Duration) []change {
	var changes []change
	reasons, values := reasons(events), valuesOf(events, tenant)
	for _, ev := range events {
		key := string(ev.Kv.Key)
		lock, entry, ok := split(key, tenant)
		if !ok || lock == home {
			continue
		}
		c := change{history.Change{Lock: lock, Entry: entry, Revision: ev.Kv.ModRevision, At: at}, key}
		if ev.Type == clientv3.EventTypePut {
			c.Joined, c.Rewritten = true, !ev.IsCreate()
			c.Claim = claimOn(lock, values[entry])
		} else {
			c.Reason = reasons[entry]
		}
		changes = append(changes, c)
	}
	return changes
}

// valuesOf returns the values of the entries that join, by their ids. That of a set
// is under the key of its first lock only; the others hold that lock's name, as first.
func valuesOf(events []*clientv3.Event, tenant string) map[string][]byte {
	found := map[string][]byte{}
	for _, ev := range events {
		_, entry, ok := split(string(ev.Kv.Key), tenant)
		var pointer struct{ First string }
		if ok && json.Unmarshal(ev.Kv.Value, &pointer) == nil && pointer.First == "" {
			found[entry] = ev.Kv.Value
		}
	}
	return found
}

func reasons(events []*clientv3.Event) map[string]string {
	found := map[string]string{}
	for _, ev := range events {
		var ends []struct{ ID, Reason string }
		if strings.Contains(string(ev.Kv.Key), endedDir) && json.Unmarshal(ev.Kv.Value, &ends) == nil {
			for _, e := range ends {
				found[e.ID] = e.Reason
			}
		}
	}
	return found
}

func split(key, tenant string) (lock, entry string, ok bool) {
	_, rest, ok := strings.Cut(key, entriesDir+tenant+"/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// position writes, as etcd tells nothing of what was committed before.
func (e *inEtcd) position(ctx context.Context) (int64, error) {
	resp, err := e.client.Put(ctx, syncKey, "")
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// expire deletes with nothing that says why, as etcd does.
func (e *inEtcd) expire(ctx context.Context, key string) (bool, error) {
	resp, err := e.client.Delete(ctx, key)
	if err != nil {
		return false, err
	}
	return resp.Deleted == 1, nil
}
