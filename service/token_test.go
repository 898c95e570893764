package service_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// uses are everything that a token is good for.
func (r *replica) uses(req service.TokenRequest) map[string]error {
	_, renewed := r.Renew(r.t.Context(), req)
	_, looked := r.Entry(r.t.Context(), req, 0)
	_, waited := r.Entry(r.t.Context(), req, time.Minute)
	return map[string]error{
		"Renew": renewed, "Entry": looked, "Wait": waited, "Release": r.Release(r.t.Context(), req),
	}
}

// refused fails unless every use of the token is, without the store being asked.
func (r *replica) refused(req service.TokenRequest) {
	r.t.Helper()
	before := len(r.store.counts())
	for use, err := range r.uses(req) {
		if e := coded(r.t, err, lock.TokenMismatch); strings.Contains(e.Error(), req.Token) &&
			req.Token != "" {
			r.t.Errorf("%s shows the token", use)
		}
	}
	if len(r.store.counts()) != before {
		r.t.Errorf("the store was asked: %v", r.store.counts())
	}
}

// TestTokenIsForOneEntry: it opens neither another lock, nor another tenant's, nor
// a set, nor another entry of the same lock.
func TestTokenIsForOneEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		g := r.hold(lasting(want("orders:1", 0)))
		other := r.hold(lasting(want("orders:2", 0)))
		set := want("orders:3", 0)
		set.Set = true
		ofSet := r.hold(lasting(set))
		wrong := map[string]func(*service.TokenRequest){
			"tenant":        func(req *service.TokenRequest) { req.Tenant = "globex" },
			"lock":          func(req *service.TokenRequest) { req.Name = "orders:2" },
			"set":           func(req *service.TokenRequest) { req.Name = "/set" },
			"entry":         func(req *service.TokenRequest) { req.ID = other.Entry.ID },
			"other's token": func(req *service.TokenRequest) { req.Token = other.Token },
			"set's token": func(req *service.TokenRequest) {
				req.Token, req.Name = ofSet.Token, "orders:3"
			},
		}
		for _, spoil := range wrong {
			req := by(g)
			spoil(&req)
			r.refused(req)
		}
		req := by(g)
		req.ID = g.Entry.ID
		if _, err := r.Renew(t.Context(), req); err != nil {
			t.Errorf("the right token: %v", err)
		}
		if _, err := r.Renew(
			t.Context(), service.TokenRequest{Tenant: "acme", Name: "/set", Token: ofSet.Token},
		); err != nil {
			t.Errorf("the set's token: %v", err)
		}
	})
}

// TestForgedTokens: no bit can be changed, nothing cut off or added.
func TestForgedTokens(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		g := r.hold(want("orders:1", 0))
		var forged []string
		for i := range 8 * len(g.Token) {
			text := []byte(g.Token)
			text[i/8] ^= 1 << (i % 8)
			forged = append(forged, string(text))
		}
		for n := range len(g.Token) {
			forged = append(forged, g.Token[:n])
		}
		_, body, _ := strings.Cut(g.Token, "_")
		raw, err := base64.RawURLEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 * len(raw) {
			raw[i/8] ^= 1 << (i % 8)
			forged = append(forged, "fp1_"+base64.RawURLEncoding.EncodeToString(raw))
			raw[i/8] ^= 1 << (i % 8)
		}
		forged = append(forged, g.Token+"A", g.Token+"=", g.Token+"\n", " "+g.Token, body, "fp2_"+body,
			strings.ToUpper(g.Token), "fp1_"+strings.Repeat("A", 64), strings.Repeat("A", 1<<16))
		for _, token := range forged {
			req := by(g)
			req.Token = token
			r.refused(req)
		}
		r.release(g)
	})
}

// TestTokensDiffer: two entries never share a token, not even two in a row with
// one idempotency key, and none of it tells the name.
func TestTokensDiffer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		seen := map[string]bool{}
		for range 3 {
			g := r.hold(keyed("orders:1", 0, "k"))
			seen[g.Token] = true
			if e := g.Entry; strings.Contains(g.Token, string(e.ID)) || strings.Contains(g.Token, e.Name()) {
				t.Errorf("token %s of %+v", g.Token, e)
			}
			r.release(g)
			g = r.hold(want("orders:1", 0))
			seen[g.Token] = true
			r.release(g)
			after(12 * time.Minute)
		}
		if len(seen) != 6 {
			t.Errorf("%d tokens of 6 entries", len(seen))
		}
	})
}

// TestTokensSurviveARestart: a replica with the same key accepts them, one with
// another key does not.
func TestTokensSurviveARestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		first := s.replica(t)
		g := first.hold(want("orders:1", 0))
		first.Close()
		second := s.replica(t)
		same(t, g, second.renew(g))
		foreign := s.replica(
			t,
			func(c *service.Config) { c.TokenKey = []byte("another key behind the lock tokens, as long") },
		)
		foreign.refused(by(g))
		second.release(g)
	})
}

// TestTokenOfAnEarlierEntry: the key is used again after the ten minutes. The
// token of its first entry does not open the second one.
func TestTokenOfAnEarlierEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, late := s.replica(t), s.replica(t)
		late.store.setFeed(frozen)
		old := r.hold(keyed("orders:1", 0, "k"))
		r.release(old)
		after(12 * time.Minute)
		now := r.hold(keyed("orders:1", 0, "k"))
		if now.Entry.ID != old.Entry.ID {
			t.Fatal("the key has another id: the test tests nothing")
		}
		for _, r := range []*replica{r, late} {
			for use, err := range r.uses(by(old)) {
				if e := coded(t, err, lock.Lost); e.Reason != lock.Unknown {
					t.Errorf("%s: %+v", use, e)
				}
			}
		}
		r.renew(now)
	})
}

// TestTokenAheadOfTheStore: a genuine token carries a number that the store has
// not reached. Then the store lost its past, and nothing is granted any more.
func TestTokenAheadOfTheStore(t *testing.T) {
	for _, state := range []string{"Running", "Restarted"} {
		t.Run(state, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				for range 10 {
					r.release(r.hold(want("orders:1", 0)))
				}
				g := r.hold(want("orders:1", 0))
				r.store.setFeed(lost)
				synctest.Wait()
				s.restoreBackup(g.Entry.Number - 5)
				if state == "Restarted" {
					r.Close()
					r = s.replica(t)
				} else {
					r.store.setFeed(running)
					synctest.Wait()
				}
				_, err := r.Renew(t.Context(), by(g))
				lostFor(t, err, lock.Unknown)
				if s.Distrusted() != g.Entry.Number {
					t.Errorf("distrusted up to %d, want %d", s.Distrusted(), g.Entry.Number)
				}
				p := r.start(want("orders:2", time.Minute))
				p.fails(lock.FenceFloorRequired)
				if len(s.ids()) != 0 {
					t.Error("granted by a store that lost its past")
				}
			})
		})
	}
}

// TestDistrustThatFails: a client with that token does not get a success.
func TestDistrustThatFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		r.Close()
		s.restoreBackup(10)
		other := s.replica(t)
		other.store.on(broken, distrust)
		_, err := other.Renew(t.Context(), by(g))
		coded(t, err, lock.StoreUnavailable)
	})
}
