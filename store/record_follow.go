package store

import (
	"context"
	"log/slog"
	"time"
)

// After a reading the follower pauses for followSlack times its duration, so that constant writes
// take no more than a tenth of a replica's time, but at least for followPace and at most for
// followPause. After a failure it pauses for followPace, and retries after followRetry or a
// change: how long a read took that failed says nothing of its cost. followRefresh is the longest
// time between two readings.
const (
	followRefresh = 30 * time.Second
	followRetry   = time.Second
	followPace    = 100 * time.Millisecond
	followPause   = 2 * time.Second
	followSlack   = 10
)

// RecordFollower keeps reading all records of a kind, so that its user has a copy at most a
// second old while the store answers soon. It skips unreadable records.
type RecordFollower[T any] struct {
	Records interface {
		RecordLister
		RecordWatcher
	}
	Log   *slog.Logger
	Kind  string
	Most  int // bounds the records; the rest is skipped
	Parse func(Record) (T, error)

	// Always has Run call take after every reading, for a user that also reads single records.
	Always bool

	kept    map[RecordKey]followed[T] // nil before the first reading
	damaged map[RecordKey]uint64      // unreadable versions that were logged
}

// followed is the decoded record of one version.
type followed[T any] struct {
	version uint64
	value   T
}

// Run calls take with the records whenever they differ, until ctx ends. take owns the map.
func (f *RecordFollower[T]) Run(ctx context.Context, take func(map[RecordKey]T)) {
	changed, stop := RecordChanges(ctx, f.Records, f.Kind)
	defer stop()
	for ctx.Err() == nil {
		began, pause, again := time.Now(), followPace, followRetry
		if err := f.read(ctx, take); err == nil {
			pause = min(max(followPace, followSlack*time.Since(began)), followPause)
			again = followRefresh
		} else if ctx.Err() == nil {
			f.Log.Debug("records could not be read, and are tried again", "kind", f.Kind, "error", err)
		}
		if Pause(ctx, pause) != nil {
			return
		}
		Await(ctx, changed, again)
	}
}

// read reads everything once. It keeps the decoded value of an unchanged version.
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
	if !same || f.Always {
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

// complain logs what is wrong with a record, once, without its content.
func (f *RecordFollower[T]) complain(record Record, bad error) {
	if f.damaged[record.RecordKey] != record.Version {
		f.Log.Error("a record cannot be read, and is passed over",
			"kind", f.Kind, "tenant", record.Tenant, "id", record.ID, "error", bad)
	}
}
