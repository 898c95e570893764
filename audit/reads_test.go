package audit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/store"
)

// counting is a store that counts what is read of it.
type counting struct {
	store.RecordStore
	lists, records int
}

func (c *counting) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	page, err := c.RecordStore.List(ctx, q)
	c.lists++
	c.records += len(page.Records)
	return page, err
}

// TestReads: however much is on record, a page costs about what is on it, and all of it together
// little more than to read it once.
func TestReads(t *testing.T) {
	const all = 2000
	for what, ago := range map[string]func(i int) time.Duration{
		"spread over a week": func(i int) time.Duration { return time.Duration(i) * 6 * day / all },
		"spread over many weeks": func(i int) time.Duration {
			return time.Duration(i) * (89 * day / all)
		},
		"all within seconds": func(i int) time.Duration {
			return 3*day + time.Duration(i)*time.Millisecond
		},
		"in two bursts": func(i int) time.Duration {
			return time.Duration(i%2)*50*day + time.Duration(i)*time.Millisecond
		},
		"all in one millisecond": func(int) time.Duration { return day },
		"most of it just now": func(i int) time.Duration {
			return time.Duration(i*i) * time.Microsecond
		},
		"by a clock that is ahead": func(i int) time.Duration {
			return time.Duration(i)*time.Minute - day
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLedger(t)
			for i := range all {
				l.put(fmt.Sprint("t", i%5), "a", ago(i))
			}
			c := &counting{RecordStore: l.records}
			l.log = audit.NewLog(c, audit.DefaultRetention, func() time.Time { return l.now })
			page, err := l.log.Page(t.Context(), audit.Query{Limit: 100})
			if err != nil || len(page.Records) != 100 {
				t.Fatalf("%v, %v", page, err)
			}
			t.Logf("a page: %d lists, %d records", c.lists, c.records)
			if most := 3 * (2*100 + 256); c.lists > 60 || c.records > most &&
				what != "all in one millisecond" {
				t.Errorf("a page took %d lists of %d records, want at most 60 of %d", c.lists, c.records, most)
			}
			c.lists, c.records = 0, 0
			read, q := 0, audit.Query{Limit: 1000}
			for more := true; more; more = q.Before != "" {
				if page, err = l.log.Page(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				read += len(page.Records)
				q.Before, q.Span = page.Next, page.Span
			}
			t.Logf("all: %d lists, %d records", c.lists, c.records)
			if most := 4 * all; read != all || what != "all in one millisecond" && c.records > most {
				t.Errorf("%d of %d records were read as %d, want at most %d", read, all, c.records, most)
			}
		})
	}
}

// TestFewAmongMany: a page of what few records match reads a bounded part of the log, however much
// is on record, and the pages together have all of it.
func TestFewAmongMany(t *testing.T) {
	const all, each, most = 20_000, 4000, 15_000
	l := newLedger(t)
	var puts errgroup.Group
	puts.SetLimit(100)
	for i := range all {
		ago := time.Duration(i) * (80 * day / all)
		put := recordOf("t", fmt.Sprint("lock-", i%each), l.now.Add(-ago)).Put()
		puts.Go(func() error {
			_, err := l.records.Put(t.Context(), put)
			return err
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	c := &counting{RecordStore: l.records}
	l.log = audit.NewLog(c, audit.DefaultRetention, func() time.Time { return l.now })
	found, pages := 0, 0
	q := audit.Query{Limit: 100, Match: func(r *audit.Record) bool {
		return r.Object.Locks[0] == "lock-7"
	}}
	for more := true; more; more = q.Before != "" {
		c.records = 0
		page, err := l.log.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if c.records > most || pages > all/each {
			t.Fatalf("page %d read %d records, want at most %d", pages, c.records, most)
		}
		pages, found, q.Before = pages+1, found+len(page.Records), page.Next
	}
	if t.Logf("%d pages", pages); found != all/each {
		t.Errorf("%d records were found, want %d", found, all/each)
	}
}
