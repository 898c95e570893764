package store

import (
	"context"
	"log/slog"
	"time"
)

// Between two readings of a kind is followPace, and followSlack times what one took: whoever
// writes all the time costs no more than a tenth of a replica's time. followRefresh is how often
// everything is read at least, and followRetry how long after a failure.
const (
	followRefresh = 30 * time.Second
	followRetry   = time.Second
	followPace    = 100 * time.Millisecond
	followSlack   = 10
)

// RecordFollower keeps reading all records of a kind, so that its user has a copy that is late by
// a second at most while the store can be asked. What cannot be read is passed over.
type RecordFollower[T any] struct {
	Records interface {
		RecordLister
		RecordWatcher
	}
	Log   *slog.Logger
	Kind  string
	Most  int // records that are read; those beyond it are passed over
	Parse func(Record) (T, error)

	kept    map[RecordKey]followed[T] // nil before the first reading
	damaged map[RecordKey]uint64      // the versions that could not be read, and were logged
}

// followed is what a record said, at one version.
type followed[T any] struct {
	version uint64
	value   T
}

// Run calls take with what there is, whenever that is something else, until ctx ends. The map is
// take's to keep.
func (f *RecordFollower[T]) Run(ctx context.Context, take func(map[RecordKey]T)) {
	changed, stop := RecordChanges(ctx, f.Records, f.Kind)
	defer stop()
	for ctx.Err() == nil {
		began, again := time.Now(), followRefresh
		if err := f.read(ctx, take); err != nil && ctx.Err() == nil {
			f.Log.Debug("records could not be read, and are tried again", "kind", f.Kind, "error", err)
			again = followRetry
		}
		if Pause(ctx, max(followPace, followSlack*time.Since(began))) != nil {
			return
		}
		Await(ctx, changed, again)
	}
}

// read reads everything once. What it has read before at the same version stays as it is.
func (f *RecordFollower[T]) read(ctx context.Context, take func(map[RecordKey]T)) error {
	next, damaged, same := map[RecordKey]followed[T]{}, map[RecordKey]uint64{}, f.kept != nil
	read := 0
	for record, err := range EachRecord(ctx, f.Records, RecordQuery{Kind: f.Kind}) {
		if err != nil {
			return err
		}
		if read++; read > f.Most {
			break
		}
		if was, found := f.kept[record.RecordKey]; found && was.version == record.Version {
			next[record.RecordKey] = was
			continue
		}
		value, bad := f.Parse(record)
		if bad != nil {
			damaged[record.RecordKey] = record.Version
			f.complain(record, bad)
			continue
		}
		next[record.RecordKey], same = followed[T]{record.Version, value}, false
	}
	same = same && len(next) == len(f.kept)
	f.kept, f.damaged = next, damaged
	if !same {
		take(f.values())
	}
	return nil
}

func (f *RecordFollower[T]) values() map[RecordKey]T {
	all := make(map[RecordKey]T, len(f.kept))
	for key, k := range f.kept {
		all[key] = k.value
	}
	return all
}

// complain logs what is wrong with a record, once, and nothing of what is in it.
func (f *RecordFollower[T]) complain(record Record, bad error) {
	if f.damaged[record.RecordKey] != record.Version {
		f.Log.Error("a record cannot be read, and is passed over",
			"kind", f.Kind, "tenant", record.Tenant, "id", record.ID, "error", bad)
	}
}
