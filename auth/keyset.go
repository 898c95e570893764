package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// askCooldown is the shortest time between two reads of the key set that
	// unknown kids bring about: kid is read before the signature is checked, so
	// anybody can make one up.
	askCooldown = 10 * time.Second

	// absentFor is how long a kid that a read did not bring is not asked for
	// again. Within it the key is still found as soon as any other read brings it.
	absentFor = time.Minute

	// firstRetry is the time between two reads before one has succeeded.
	firstRetry = 5 * time.Second
)

// keySet holds the keys of a JWK Set and keeps them current: a goroutine of its
// own reads the source at an interval, and when a token names an unknown kid.
//
// jwkset's own HTTP storage is not used, only its decoding of keys: there the
// goroutine cannot be waited for, a body has no limit, one bad key fails the
// set, a client that hangs up cancels the read it caused, and a kid that stays
// unknown is asked for again and again.
type keySet struct {
	source   source
	interval time.Duration
	now      func() time.Time
	log      *slog.Logger

	index atomic.Pointer[map[keyID][]*key]
	ready atomic.Bool // a read brought a usable key

	// Only the reader (the start, then the goroutine) touches these.
	keys     []*key
	skipped  []error
	document []byte
	failing  string // the failure that was logged last, while it lasts

	mu      sync.Mutex
	asked   *reading // brought about by an unknown kid and not yet over
	nextAsk time.Time
	absent  map[keyID]time.Time // until when; at most one is added per cooldown

	wake   chan *reading // one at a time, so a send never blocks
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

// reading is one read of the source that requests wait for.
type reading struct {
	over chan struct{}
	err  error // set before over is closed
}

// startKeySet reads the set once, within ctx, and then keeps it current until close. A URL that
// cannot be read yet is read again every few seconds.
func startKeySet(ctx context.Context, src source, c Config) (*keySet, error) {
	s := &keySet{
		source: src, interval: c.Refresh, now: c.Now, log: c.Logger, absent: map[keyID]time.Time{},
		wake: make(chan *reading, 1), done: make(chan struct{}),
	}
	if s.interval == 0 {
		s.interval = src.every()
	}
	s.index.Store(&map[keyID][]*key{})
	err := s.update(ctx)
	if _, isFile := src.(fileSource); err != nil && (isFile || ctx.Err() != nil) {
		return nil, err
	}
	s.report(ctx, err)
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.keepCurrent(ctx)
	return s, nil
}

// CheckKeySet returns what is wrong with the JWKS of a [Config], of a file also with what is in it.
// A URL is not asked.
func CheckKeySet(location string) error {
	src, err := newSource(location)
	file, isFile := src.(fileSource)
	if err != nil || !isFile {
		return err
	}
	document, err := file.read(context.Background()) // which does not block
	if err != nil {
		return err
	}
	keys, skipped, err := parseKeySet(document)
	if err != nil {
		return err
	}
	return usable(keys, skipped)
}

// usable returns an error for a set without a key that a token can be verified with.
func usable(keys []*key, skipped []error) error {
	if len(keys) > 0 {
		return nil
	}
	return fmt.Errorf(
		"no usable key (RSA of %d bits or more for RS256, P-256 for ES256, Ed25519 for EdDSA) in the set: %s",
		minRSABits, firstFew(skipped),
	)
}

// close ends the goroutine and waits for it. The keys stay usable.
func (s *keySet) close() {
	s.cancel()
	<-s.done
}

func (s *keySet) keepCurrent(ctx context.Context) {
	defer close(s.done)
	for {
		timer := time.NewTimer(s.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			s.refresh(ctx, nil)
		case r := <-s.wake:
			s.refresh(ctx, r)
		}
	}
}

// pause is the time from one read to the next.
func (s *keySet) pause() time.Duration {
	if s.ready.Load() {
		return s.interval
	}
	return min(s.interval, firstRetry)
}

// refresh reads the source and answers those who wait for r, if any.
func (s *keySet) refresh(ctx context.Context, r *reading) {
	err := s.update(ctx)
	if ctx.Err() != nil {
		return // closing: those who wait watch done
	}
	s.report(ctx, err)
	if r == nil {
		return
	}
	s.mu.Lock()
	s.asked = nil
	s.mu.Unlock()
	r.err = err
	close(r.over)
}

// report logs a failure when it begins or changes, and its end. A file is read
// so often that each failure would be too much.
func (s *keySet) report(ctx context.Context, err error) {
	switch {
	case err == nil && s.failing != "":
		s.failing = ""
		s.log.InfoContext(ctx, "key set can be read again")
	case err != nil && err.Error() != s.failing:
		s.failing = err.Error()
		s.log.WarnContext(ctx, "key set cannot be read, the last keys stay",
			slog.Any("error", err), slog.Bool("ready", s.ready.Load()))
	}
}

// update reads the source. Until there was a usable key, a set without one is an error.
func (s *keySet) update(ctx context.Context) error {
	err := s.read(ctx)
	if err != nil || s.ready.Load() {
		return err
	}
	if err = usable(s.keys, s.skipped); err == nil {
		s.ready.Store(true)
	}
	return err
}

// read replaces the keys by what the source holds now. If it cannot, the keys
// stay. A set that is readable and empty does replace them: that is how an
// operator withdraws the last key.
func (s *keySet) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	document, err := s.source.read(ctx)
	if err != nil {
		return err
	}
	if s.document == nil || !bytes.Equal(document, s.document) {
		keys, skipped, err := parseKeySet(document)
		if err != nil {
			return err
		}
		s.document, s.skipped = document, skipped
		s.replace(keys)
		s.log.InfoContext(ctx, "key set changed", slog.Int("keys", len(keys)),
			slog.Int("skipped", len(skipped)), slog.String("why_skipped", firstFew(skipped)))
	}
	return nil
}

// replace swaps the keys. A key that stays keeps its identity, so that tokens
// verified with it need not be verified again; one that left is void at once.
func (s *keySet) replace(keys []*key) {
	stays := map[*key]bool{}
	for i, k := range keys {
		if at := slices.IndexFunc(s.keys, k.equal); at >= 0 {
			keys[i] = s.keys[at]
			stays[keys[i]] = true
		}
	}
	old, index := s.keys, indexKeys(keys)
	s.keys = keys
	s.index.Store(&index)
	for _, k := range old {
		if !stays[k] {
			k.retire()
		}
	}
}

// firstFew renders as many reasons as a person wants to read.
func firstFew(reasons []error) string {
	if len(reasons) == 0 {
		return "none left out"
	}
	var few []string
	for _, reason := range reasons[:min(len(reasons), 3)] {
		few = append(few, fmt.Sprintf("%.200s", reason))
	}
	return strings.Join(few, "; ")
}

// find returns the keys with this id. If there is none, it may wait for one read of
// the source, at most fetchTimeout long.
func (s *keySet) find(ctx context.Context, id keyID) []*key {
	if found := s.known(id); found != nil {
		return found
	}
	r, mine := s.ask(id)
	if r == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.done:
		return nil
	case <-r.over:
	}
	found := s.known(id)
	if found == nil && mine && r.err == nil {
		s.markAbsent(id)
	}
	return found
}

func (s *keySet) known(id keyID) []*key { return (*s.index.Load())[id] }

// ask has the source read for an unknown key, or joins a read that is under
// way; mine says which. It returns nil if the key has to be refused without.
func (s *keySet) ask(id keyID) (r *reading, mine bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.absent[id]) {
		return nil, false
	}
	if s.asked != nil {
		return s.asked, false
	}
	if now.Before(s.nextAsk) {
		return nil, false
	}
	s.nextAsk = now.Add(askCooldown)
	s.asked = &reading{over: make(chan struct{})}
	s.wake <- s.asked
	return s.asked, true
}

// markAbsent is only for the request that caused the read: the read began
// after that request, so a key published before the token was signed would be
// in it.
func (s *keySet) markAbsent(id keyID) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, until := range s.absent {
		if !now.Before(until) {
			delete(s.absent, other)
		}
	}
	s.absent[id] = now.Add(absentFor)
}
