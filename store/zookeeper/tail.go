package zookeeper

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// If no other replica has written for alone, the feed reads the log at most every lull: it has
	// this replica's own records without a read.
	alone = time.Second
	lull  = 10 * time.Millisecond
)

// tail follows the log on one connection.
type tail struct {
	feed  *feed
	link  *link
	ahead map[int32]written // known, but not next yet
	heads chan head
	read  chan reading
	reads sync.WaitGroup

	listed chan error // the list has ended

	foreign time.Time // when a record of another replica was last read
}

// head is the log's data and length, with a watch on it.
type head struct {
	data  []byte
	stat  *zk.Stat
	watch <-chan zk.Event
	err   error
}

type reading struct {
	records []written
	err     error
}

// run reads the head whenever it has changed, and the records before it. Either a read is in
// flight or the watch is armed; this replica's own writes arrive besides.
func (t *tail) run(ctx context.Context) error {
	t.readHead(ctx)
	var h head
	var watch <-chan zk.Event
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for {
		var err error
		select {
		case <-rest.C:
			t.readHead(ctx)
		case h = <-t.heads:
			if err = h.err; err == nil {
				err = t.seen(ctx, h, &watch)
			}
		case r := <-t.read:
			for _, w := range r.records {
				t.ahead[w.n] = w
			}
			if err = r.err; err == nil {
				err = t.advance(head{})
			}
			if err == nil {
				err = t.seen(ctx, h, &watch)
			}
		case <-watch:
			watch = nil
			if time.Since(t.foreign) > alone {
				rest.Reset(lull)
			} else {
				t.readHead(ctx)
			}
		case <-t.feed.fresh:
			t.takeOwn()
			err = t.advance(head{})
		case err = <-t.listed:
		case err = <-t.feed.again:
		case <-t.link.broken:
			err = t.link.why
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// takeOwn adopts what this replica has written.
func (t *tail) takeOwn() {
	next := t.feed.position()
	for _, w := range t.feed.takeOwn() {
		if w.epoch == t.feed.epoch && w.n >= next {
			t.ahead[w.n] = w
		}
	}
}

func (t *tail) readHead(ctx context.Context) {
	path := t.feed.reader.root.log(t.feed.epoch)
	t.reads.Go(func() {
		h, err := do(ctx, t.link, func(c *zk.Conn) (h head, err error) {
			h.data, h.stat, h.watch, err = c.GetW(path)
			return h, err
		})
		switch {
		case err != nil:
		case string(h.data) == rotated:
			err = errRotated
		case h.stat.Czxid != t.feed.born:
			err = errAnotherLog
		}
		h.err = err
		t.heads <- h
	})
}

// seen handles a head. It first reads the unknown records before it; the newest is often the
// head's own data.
func (t *tail) seen(ctx context.Context, h head, watch *<-chan zk.Event) error {
	t.takeOwn()
	next, length := t.feed.position(), created(h.stat)
	if _, own := t.ahead[length-1]; length > next && !own {
		t.foreign = time.Now()
	}
	if length > next && len(h.data) > 0 {
		r, err := parseRecord(h.data)
		if err != nil {
			return err
		}
		t.ahead[length-1] = written{n: length - 1, zxid: h.stat.Mzxid, record: r, size: len(h.data)}
	}
	from, to := next, length
	for ; from < to; from++ {
		if _, known := t.ahead[from]; !known {
			break
		}
	}
	for ; to > from; to-- {
		if _, known := t.ahead[to-1]; !known {
			break
		}
	}
	to = min(to, from+foldRecords) // so that the feed advances while it reads many
	if from >= to {
		*watch = h.watch
		return t.advance(h)
	}
	epoch := t.feed.epoch
	t.reads.Go(func() {
		records, err := t.feed.reader.records(ctx, t.link, epoch, from, to)
		t.read <- reading{records, err}
	})
	return nil
}

// advance applies the records that are next, and the head's position once all before it are
// applied.
func (t *tail) advance(h head) error {
	var ready []written
	t.feed.ahead.Store(true) // from here on [feed.wrote] wakes the tail
	defer func() { t.feed.ahead.Store(len(t.ahead) > 0) }()
	next := t.feed.position()
	for w, ok := t.ahead[next]; ok; w, ok = t.ahead[next] {
		ready = append(ready, w)
		delete(t.ahead, next)
		next++
	}
	for n := range t.ahead {
		if n < next {
			delete(t.ahead, n)
		}
	}
	var zxid int64
	if h.stat != nil && next >= created(h.stat) {
		zxid = h.stat.Mzxid
	}
	if len(ready) == 0 && zxid == 0 {
		return nil
	}
	return t.feed.apply(ready, zxid)
}
