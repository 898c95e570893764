package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/test/bubble"
)

// scripted are attempts whose answers a test gives, in order; the last one is repeated.
type scripted struct {
	puts, finds []answer
	shutOuts    []error
	did         []string
}

type answer struct {
	entry *lock.Entry
	moved bool
	err   error
}

func next[T any](of *[]T) (a T) {
	if len(*of) == 0 {
		return a
	}
	a = (*of)[0]
	if len(*of) > 1 {
		*of = (*of)[1:]
	}
	return a
}

func (s *scripted) Put(
	context.Context, func(time.Duration) time.Time,
) (*lock.Entry, time.Duration, error) {
	s.did = append(s.did, "put")
	a := next(&s.puts)
	return a.entry, 0, a.err
}

func (s *scripted) Find(context.Context) (*lock.Entry, bool, error) {
	s.did = append(s.did, "find")
	a := next(&s.finds)
	return a.entry, a.moved, a.err
}

func (s *scripted) ShutOut(context.Context) error {
	s.did = append(s.did, "shut out")
	return next(&s.shutOuts)
}

func (*scripted) Admitted(context.Context) error { return nil }
func (*scripted) Ours(e *lock.Entry) bool        { return e.Handle == 1 }
func (*scripted) Open(kept *lock.Entry) bool     { return kept == nil }

func (s *scripted) End(context.Context, *lock.Entry) error {
	s.did = append(s.did, "end")
	return nil
}

// removals is a store that notes what is taken back.
type removals struct {
	store.Store
	of *scripted
}

func (r removals) Remove(
	_ context.Context, _ *lock.Entry, why lock.Reason, _ ...*lock.Entry,
) error {
	r.of.did = append(r.of.did, string(why))
	return nil
}

var (
	errSilent = errors.New("no answer")
	placed    = &lock.Entry{ID: "e", Tenant: "acme", Handle: 1, Number: 7}
	another   = &lock.Entry{ID: "e", Tenant: "acme", Handle: 2, Number: 8}
	busy      = &lock.Error{Code: lock.Overloaded}
)

// TestJoin: what a call of Enqueue does after each answer, and says in the end.
func TestJoin(t *testing.T) {
	unknown := answer{err: errSilent}
	for name, c := range map[string]struct {
		script   scripted
		keyed    bool
		callback *lock.Callback
		want     []string // what it does, in the background too
		number   uint64
		code     lock.Code
		ofUnkown bool
		cause    error
	}{
		"written": {script: scripted{puts: []answer{{entry: placed}}}, want: []string{"put"}, number: 7},
		"written, and the answer is lost": {
			script: scripted{puts: []answer{unknown}, finds: []answer{{entry: placed}}},
			want:   []string{"put", "shut out", "find"}, number: 7,
		},
		"a fresh id is written once": {
			script: scripted{puts: []answer{unknown}}, want: []string{"put", "shut out", "find", "end"},
			code: lock.StoreUnavailable, cause: store.ErrNotWritten,
		},
		"a key is tried again": {
			script: scripted{puts: []answer{unknown, {entry: placed}}}, keyed: true,
			want: []string{"put", "shut out", "find", "put"}, number: 7,
		},
		"another request of the key is joined": {
			script: scripted{puts: []answer{{err: engine.ErrConflict}}, finds: []answer{{entry: another}}},
			keyed:  true, want: []string{"put", "find"}, number: 8,
		},
		"a withdrawn one is replaced": {
			script: scripted{
				puts: []answer{{err: engine.ErrConflict}, {entry: placed}}, finds: []answer{{moved: true}},
			},
			keyed: true, want: []string{"put", "find", "put"}, number: 7,
		},
		"too much to do, after an answer was lost": {
			script: scripted{puts: []answer{unknown, {err: busy}}}, keyed: true,
			want: []string{"put", "shut out", "find", "put", "end"}, code: lock.Overloaded,
		},
		"full, and perhaps written": {
			script: scripted{
				puts:  []answer{{err: &engine.Full{Cause: &lock.Error{Code: lock.StoreUnavailable}}}},
				finds: []answer{{entry: placed}},
			},
			want: []string{"put", "shut out", "find", "withdrawn", "end"},
			code: lock.StoreUnavailable, ofUnkown: true,
		},
		"full, and perhaps written, with a callback": {
			script: scripted{
				puts:  []answer{{err: &engine.Full{Cause: &lock.Error{Code: lock.StoreUnavailable}}}},
				finds: []answer{{entry: placed}},
			},
			callback: &lock.Callback{URL: "https://example.org/"},
			want:     []string{"put", "shut out", "find", "end"},
			code:     lock.StoreUnavailable, ofUnkown: true,
		},
		"not sent for long": {
			script: scripted{puts: []answer{{err: batch.ErrNotSent}}},
			want:   []string{"put", "put", "put", "end"}, code: lock.StoreUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				a := c.script
				cleaner := engine.NewCleaner(slog.New(slog.DiscardHandler))
				js := &engine.Joins{
					Store: removals{of: &a}, Trust: store.NewTrust(), Timeout: 50 * time.Millisecond,
					Closing: t.Context(), Cleaner: cleaner,
				}
				e := &lock.Entry{ID: "e", Tenant: "acme", TTL: time.Minute, Callback: c.callback}
				if c.keyed {
					e.Request = "the parameters"
				}
				got, written, err := js.Enqueue(t.Context(), e, &a)
				synctest.Wait()
				cleaner.Close()
				checkJoin(t, got, written, err, c.number, c.code, c.ofUnkown, c.cause)
				if len(a.did) != len(c.want) {
					t.Fatalf("did %q, want %q", a.did, c.want)
				}
				for i := range c.want {
					if a.did[i] != c.want[i] {
						t.Errorf("did %q, want %q", a.did, c.want)
					}
				}
			})
		})
	}
}

func checkJoin(
	t *testing.T, got *lock.Entry, written bool, err error,
	number uint64, code lock.Code, unknown bool, cause error,
) {
	t.Helper()
	var why *lock.Error
	switch {
	case number != 0:
		if err != nil || got.Number != number || written != (number == placed.Number) {
			t.Errorf("Enqueue = %+v, %v, %v", got, written, err)
		}
	case !errors.As(err, &why) || why.Code != code || why.OutcomeUnknown != unknown ||
		cause != nil && !errors.Is(err, cause):
		t.Errorf("Enqueue = %#v", err)
	}
}
