package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// recordsDir starts the directories of small records. Each kind has one.
const recordsDir = "records/"

var (
	_ store.RecordStore = (*Records)(nil)
	_ Table             = (*Records)(nil)
)

// Own is what each write of a record depends on besides the record. [Meta] is one.
type Own interface {
	// Refusal returns why no record may be written, or nil.
	Refusal() *lock.Error
	// Unchanged returns the conditions of a write.
	Unchanged() []If
	// Reread is called when one of these does not hold.
	Reread(ctx context.Context) error
	// Number returns the number of a position.
	Number(position int64) uint64
}

// Records keeps small records in a store.
type Records struct {
	driver Driver
	own    Own
	log    *slog.Logger
	life   *Life // of this replica's bound records
}

// NewRecords returns the records of a store. The caller closes them before the driver.
func NewRecords(d Driver, own Own, log *slog.Logger) *Records {
	return &Records{driver: d, own: own, log: log, life: NewLife(d)}
}

// Close ends the bound records.
func (r *Records) Close() { r.life.Close() }

// Get implements store.RecordStore.
func (r *Records) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	return GetRecord(ctx, r, k)
}

// Put implements store.RecordStore.
func (r *Records) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	return PutRecord(ctx, r, p)
}

// Delete implements store.RecordStore.
func (r *Records) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	return DeleteRecord(ctx, r, k, version)
}

// KeyOf returns the key of a record.
func KeyOf(k store.RecordKey) Key {
	return Key{recordsDir + k.Kind, k.Tenant + "/" + k.ID}
}

// Look implements [Table].
func (r *Records) Look(
	ctx context.Context, k store.RecordKey, fresh bool,
) (s RecordState, err error) {
	if s.State, err = r.driver.Look(ctx, KeyOf(k), fresh); err == nil && s.Found {
		s.Form, s.Version = ParseForm(s.Data), r.own.Number(s.Position)
	}
	return s, err
}

// Swap implements [Table].
func (r *Records) Swap(ctx context.Context, s RecordState, w *RecordWrite) (uint64, error) {
	return r.swapBy(ctx, s, w, r.driver.Commit)
}

// commit is that of a [Driver], or does something more in the same transaction.
type commit = func(context.Context, Txn) (position int64, err error)

// PutWith is Put by another commit, which does something more in the same transaction. A
// *lock.Error of commit says why that is impossible, for example [lock.Lost].
func (r *Records) PutWith(ctx context.Context, p store.RecordPut, do commit) error {
	if p.Bound {
		return lock.Invalid("bound", "is not for a record that is put with something more")
	}
	_, err := PutRecord(ctx, &with{r, do}, p)
	return err
}

// with is the table of [Records.PutWith].
type with struct {
	*Records
	commit commit
}

// Swap implements [Table].
func (w *with) Swap(ctx context.Context, s RecordState, r *RecordWrite) (uint64, error) {
	return w.swapBy(ctx, s, r, w.commit)
}

func (r *Records) swapBy(
	ctx context.Context, s RecordState, w *RecordWrite, do commit,
) (uint64, error) {
	t, err := r.txn(ctx, s, w)
	if err != nil {
		return 0, err
	}
	position, err := do(ctx, t)
	return r.swapped(ctx, t, w, position, err)
}

// txn returns the transaction that writes w if the state of its key is still s. The condition on
// the record is the last one.
func (r *Records) txn(ctx context.Context, s RecordState, w *RecordWrite) (t Txn, err error) {
	if refusal := r.own.Refusal(); refusal != nil {
		return t, refusal
	}
	form, k := w.Form, KeyOf(w.RecordKey)
	if w.Bound {
		if form.Life, err = r.life.Begin(ctx); err != nil {
			return t, errors.Join(batch.ErrNotSent, err)
		}
	}
	put := Put{Key: k, Delete: w.Delete, Life: form.Life, Was: s.Life}
	if !w.Delete {
		put.Value = form.Encode()
	}
	t = Txn{If: append(r.own.Unchanged(), If{k, s.State}), Put: []Put{put}, Frees: w.Frees}
	if s.Found && s.Version != r.own.Number(s.Position) {
		return t, ErrRaced // the floor was raised since the look
	}
	return t, nil
}

// swapped returns the result of a write for [Table], from that of its transaction.
func (r *Records) swapped(
	ctx context.Context, t Txn, w *RecordWrite, position int64, err error,
) (version uint64, _ error) {
	full := (*Full)(nil)
	switch race, ok := errors.AsType[*Raced](err); {
	case ok && race.If >= 0 && race.If < len(t.If)-1:
		return 0, errors.Join(batch.ErrNotSent, r.own.Reread(ctx))
	case ok:
		return 0, ErrRaced
	case errors.Is(err, ErrLifeOver):
		r.life.Over(t.Put[0].Life)
		return 0, errors.Join(batch.ErrNotSent, err)
	case errors.As(err, &full):
		return r.beyondQuota(ctx, w, full)
	case err != nil:
		return 0, err
	}
	if refusal := r.own.Refusal(); refusal != nil {
		refusal.OutcomeUnknown = true
		return 0, refusal
	}
	return r.own.Number(position), nil
}

// beyondQuota finds out what became of a write to which the store answered that it is full. For a
// deletion the outcome stays unknown, because the record does not show which caller deleted it.
func (r *Records) beyondQuota(ctx context.Context, w *RecordWrite, full *Full) (uint64, error) {
	now, err := r.Look(ctx, w.RecordKey, true)
	if err == nil && !w.Delete && now.Found && now.Mark == w.Mark {
		return now.Version, nil
	}
	final := *full.Cause
	final.OutcomeUnknown = err != nil || w.refused(now) != nil
	return 0, &final
}

// List implements store.RecordStore.
func (r *Records) List(
	ctx context.Context, q store.RecordQuery,
) (page store.RecordPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	l := Listing{
		Dir: recordsDir + q.Kind, Cursor: q.After, Limit: q.Limit, Seek: seek(&q),
		Take: func(name string, s State) bool {
			k, ok := recordAt(q.Kind, name)
			return !ok || !q.Wants(k) || page.Add(&q, store.Record{
				RecordKey: k, Value: ParseForm(s.Data).Value, Version: r.own.Number(s.Position),
			})
		},
	}
	if q.Tenant != "" {
		l.From, l.Until = q.Tenant+"/"+q.From, behind(q.Tenant)
		if q.Until != "" {
			l.Until = q.Tenant + "/" + q.Until
		}
	}
	next, err := r.driver.List(ctx, l)
	if err != nil {
		return store.RecordPage{}, err
	}
	page.Next = next
	return page, nil
}

// recordAt returns the key of the record with a name.
func recordAt(kind, name string) (k store.RecordKey, ok bool) {
	tenant, id, ok := strings.Cut(name, "/")
	return store.RecordKey{Kind: kind, Tenant: tenant, ID: id}, ok
}

// behind returns the first name after all those of a tenant.
func behind(tenant string) string { return tenant + string('/'+1) }

// seek returns what skips the names that a query does not want: a tenant's ids are in order.
func seek(q *store.RecordQuery) func(name string) string {
	return func(name string) string {
		k, ok := recordAt(q.Kind, name)
		switch {
		case !ok:
			return name
		case k.ID < q.From:
			return k.Tenant + "/" + q.From
		case q.Until != "" && k.ID >= q.Until:
			return behind(k.Tenant)
		}
		return name
	}
}

// Watch implements store.RecordStore.
func (r *Records) Watch(ctx context.Context, kind string, changed func()) {
	if (&store.RecordQuery{Kind: kind}).Check() != nil {
		<-ctx.Done() // there are none, and never will be
		return
	}
	follow := func(ctx context.Context) error { return r.driver.Follow(ctx, recordsDir+kind, changed) }
	store.Restart(ctx, follow, func(err error) {
		r.log.Debug("a watch of small records starts over", "kind", kind, "error", err)
	})
}
