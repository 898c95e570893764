package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// slowRecords are a replica's small records, which it learns of late.
type slowRecords struct {
	store.RecordStore
	mu      sync.Mutex
	blind   bool // it cannot read which subscriptions there are
	deletes time.Duration
	puts    time.Duration
	kinds   string // what the kinds begin with that are slow
	broken  string // what the kinds begin with that cannot be written; "" is none
	// after how long writes of deliveries fail that were made nonetheless; 0 none do
	deaf    time.Duration
	refused int // writes that another one had overtaken
	cursors int // writes of cursors
	states  int // writes of the states of targets
}

func (s *slowRecords) setBlind(blind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = blind
}

// slow has writes of some kinds take a while.
func (s *slowRecords) slow(kinds string, puts, deletes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds, s.puts, s.deletes = kinds, puts, deletes
}

// refuse has no writes of some kinds succeed.
func (s *slowRecords) refuse(kinds string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = kinds
}

// loseAnswers has writes of deliveries fail after a while, although they were made.
func (s *slowRecords) loseAnswers(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = after
}

func (s *slowRecords) deafFor(kind string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(kind, "webhook-owed-") {
		return 0
	}
	return s.deaf
}

func (s *slowRecords) wait(kind string, put bool) {
	s.mu.Lock()
	pause := s.deletes
	if put {
		pause = s.puts
	}
	if !strings.HasPrefix(kind, s.kinds) {
		pause = 0
	}
	s.mu.Unlock()
	if pause > 0 {
		<-time.After(pause)
	}
}

func (s *slowRecords) note(err error) {
	if errors.Is(err, lock.Changed) {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
	}
}

func (s *slowRecords) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	s.mu.Lock()
	blind := s.blind && (q.Kind == subscription.Kind || q.Kind == subscription.CallbackKind)
	s.mu.Unlock()
	if blind {
		return store.RecordPage{}, lock.Errorf(lock.StoreUnavailable, "it is blind")
	}
	return s.RecordStore.List(ctx, q)
}

func (s *slowRecords) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	s.wait(p.Kind, true)
	s.mu.Lock()
	broken := s.broken != "" && strings.HasPrefix(p.Kind, s.broken)
	s.mu.Unlock()
	if broken {
		return 0, lock.Errorf(lock.StoreUnavailable, "it cannot be written")
	}
	version, err := s.RecordStore.Put(ctx, p)
	s.note(err)
	if pause := s.deafFor(p.Kind); pause > 0 {
		<-time.After(pause)
		return 0, lock.Errorf(lock.StoreUnavailable, "the answer was lost")
	}
	if err == nil {
		s.count(p.Kind)
	}
	return version, err
}

func (s *slowRecords) statesWritten() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states
}

func (s *slowRecords) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case kind == "webhook-cursor":
		s.cursors++
	case strings.HasPrefix(kind, "webhook-state-"):
		s.states++
	}
}

func (s *slowRecords) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	s.wait(k.Kind, false)
	err := s.RecordStore.Delete(ctx, k, version)
	s.note(err)
	return err
}

// cursorOf is where the cursor of a subscription's shard is.
func (w *world) cursorOf(id string) lock.EventID {
	w.t.Helper()
	client := w.Connect(nil)
	defer client.Close()
	r, err := client.Records().Get(w.t.Context(), cursorKey(id))
	if err != nil {
		w.t.Fatal(err)
	}
	var f struct{ After string }
	if err := json.Unmarshal(r.Value, &f); err != nil {
		w.t.Fatal(err)
	}
	return parse(w.t, f.After)
}

func isMissed(m webhook.Message) bool {
	return strings.Contains(string(m.Payload), api.EventsMissed)
}

func (s *slowRecords) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors
}
