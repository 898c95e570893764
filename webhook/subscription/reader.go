package subscription

import (
	"context"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/store"
)

// reader reads all records of a kind, again and again.
type reader[T any] struct {
	records DirectoryRecords
	log     *slog.Logger
	kind    string
	parse   func(store.Record) (T, error)

	kept    map[store.RecordKey]kept[T] // nil before the first reading
	damaged map[store.RecordKey]uint64  // the versions that could not be read, and were logged
}

// kept is what a record said, at one version.
type kept[T any] struct {
	version uint64
	value   T
}

func newReader[T any](d *Directory, kind string, parse func(store.Record) (T, error)) *reader[T] {
	return &reader[T]{records: d.records, log: d.log, kind: kind, parse: parse}
}

// follow calls take with what there is, whenever that is something else, until ctx ends.
func (r *reader[T]) follow(ctx context.Context, take func(map[store.RecordKey]kept[T])) {
	changed, stop := store.RecordChanges(ctx, r.records, r.kind)
	defer stop()
	for ctx.Err() == nil {
		began, again := time.Now(), refresh
		if err := r.read(ctx, take); err != nil && ctx.Err() == nil {
			r.log.Debug("the webhooks could not be read, and are tried again", "kind", r.kind, "error", err)
			again = retry
		}
		if store.Pause(ctx, max(pace, slack*time.Since(began))) != nil {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// read reads everything once. What it has read before at the same version stays as it is.
func (r *reader[T]) read(ctx context.Context, take func(map[store.RecordKey]kept[T])) error {
	records, err := listAll(ctx, r.records, r.kind, "", maxRead)
	if err != nil {
		return err
	}
	next, damaged, same := make(map[store.RecordKey]kept[T], len(records)), map[store.RecordKey]uint64{}, r.kept != nil
	for _, record := range records {
		if was, found := r.kept[record.RecordKey]; found && was.version == record.Version {
			next[record.RecordKey] = was
			continue
		}
		value, bad := r.parse(record)
		if bad != nil {
			damaged[record.RecordKey] = record.Version
			r.complain(record, bad)
			continue
		}
		next[record.RecordKey], same = kept[T]{record.Version, value}, false
	}
	same = same && len(next) == len(r.kept)
	r.kept, r.damaged = next, damaged
	if !same {
		take(next)
	}
	return nil
}

// complain logs what is wrong with a record, once, and nothing of what is in it.
func (r *reader[T]) complain(record store.Record, bad error) {
	if r.damaged[record.RecordKey] != record.Version {
		r.log.Error("a record cannot be read, and is passed over",
			"kind", r.kind, "tenant", record.Tenant, "id", record.ID, "error", bad)
	}
}

// listAll reads the records of a kind, of one tenant or, with "", all: the first ones up to
// most.
func listAll(ctx context.Context, records store.RecordLister, kind, tenant string, most int) (all []store.Record, err error) {
	for record, err := range store.EachRecord(ctx, records, store.RecordQuery{Kind: kind, Tenant: tenant}) {
		if err != nil {
			return nil, err
		}
		if all = append(all, record); len(all) >= most {
			break
		}
	}
	return all, nil
}
