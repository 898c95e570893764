package store

import (
	"context"
	"iter"
	"sync"
)

// RecordLister reads pages of records, as [RecordStore].
type RecordLister interface {
	List(ctx context.Context, q RecordQuery) (RecordPage, error)
}

// EachRecord reads all pages from q.After on. An error is the last value that it yields.
func EachRecord(ctx context.Context, s RecordLister, q RecordQuery) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for more := true; more; more = q.After != "" {
			page, err := s.List(ctx, q)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range page.Records {
				if !yield(r, nil) {
					return
				}
			}
			q.After = page.Next
		}
	}
}

// RecordWatcher reports changes of records, as [RecordStore] does.
type RecordWatcher interface {
	Watch(ctx context.Context, kind string, changed func())
}

// RecordChanges watches the records of a kind until ctx ends or stop is called, which waits for
// the end. changed holds a value when there are unread changes.
func RecordChanges(
	ctx context.Context, s RecordWatcher, kind string,
) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan struct{}, 1)
	var watch sync.WaitGroup
	watch.Go(func() {
		s.Watch(ctx, kind, func() {
			select {
			case told <- struct{}{}:
			default: // a reader will look anyway
			}
		})
	})
	return told, func() {
		cancel()
		watch.Wait()
	}
}
