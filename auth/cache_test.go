package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
)

// A remembered token yields the very same *Principal; a token that is verified
// again yields another. The tests tell by that whether a signature was checked.

func TestRememberedUntilExpiry(t *testing.T) {
	clock := newClock()
	v := newVerifier(t, auth.Config{Secret: secret, Now: clock.Now})
	raw := hs().token(map[string]any{"exp": start.Add(time.Minute).Unix()})
	first := accept(t, v, raw)
	clock.Advance(time.Minute + 5*time.Second - 1)
	if accept(t, v, raw) != first {
		t.Error("the token was verified again although it is still good")
	}
	clock.Advance(1)
	reject(t, v, raw, auth.Expired)
}

func TestSameClaimsOtherSignature(t *testing.T) {
	v := strict(t)
	good := hs().token(nil)
	accept(t, v, good)
	parts := strings.Split(good, ".")
	forged := strings.Split(signer{"HS256", "", []byte(strings.Repeat("x", 32))}.token(nil), ".")
	reject(t, v, parts[0]+"."+parts[1]+"."+forged[2], auth.BadSignature)
	reject(t, v, good+"A", auth.BadSignature)
}

// few is how many tokens are remembered in tests that fill the memory.
const few = 640

func TestRoomForTenThousand(t *testing.T) {
	if n := strict(t).CacheLimit(); n != 10_000 {
		t.Errorf("%d tokens are remembered at most, want 10 000", n)
	}
}

// TestGarbageEvictsNoToken: forged tokens cannot evict good ones.
func TestGarbageEvictsNoToken(t *testing.T) {
	v := strict(t)
	v.Shrink(few)
	good := make([]string, few/5)
	principals := make([]*auth.Principal, len(good))
	for i := range good {
		good[i] = hs().token(map[string]any{"jti": fmt.Sprint(i)})
		principals[i] = accept(t, v, good[i])
	}
	forger := signer{"HS256", "", []byte(strings.Repeat("x", 32))}
	for i := range 2 * few {
		raw := forger.token(map[string]any{"jti": i})
		switch i % 3 {
		case 1:
			raw = fmt.Sprintf("%s%d", good[i%len(good)], i)
		case 2:
			raw = fmt.Sprintf("garbage.%d.garbage", i)
		}
		if verifies(t, v, raw) {
			t.Fatal("garbage was accepted")
		}
	}
	if n := v.Cached(); n != len(good) {
		t.Errorf("%d tokens are remembered, want the %d good ones", n, len(good))
	}
	for i, raw := range good {
		if accept(t, v, raw) != principals[i] {
			t.Fatal("a good token was forgotten")
		}
	}
}

// TestBoundedAndFair: more good tokens than there is room for, and some of them in
// use all the while. Those must stay.
func TestBoundedAndFair(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret, Now: newClock().Now})
	v.Shrink(few)
	mint := func(id string) string { return hs().token(map[string]any{"jti": id}) }
	hot := make([]string, few/32)
	principals := make([]*auth.Principal, len(hot))
	for i := range hot {
		hot[i] = mint(fmt.Sprint("hot", i))
		principals[i] = accept(t, v, hot[i])
	}
	for i := range 2 * few {
		accept(t, v, mint(fmt.Sprint("cold", i)))
		if i%2 == 0 {
			accept(t, v, hot[i/2%len(hot)])
		}
	}
	if n := v.Cached(); n > few || n < few*9/10 {
		t.Errorf("%d tokens are remembered, want nearly %d and no more", n, few)
	}
	for i, raw := range hot {
		if accept(t, v, raw) != principals[i] {
			t.Fatal("a token in use was forgotten")
		}
	}
}

// TestExpiredMakeRoom: tokens that are over go before those that are good, even
// if they were used a moment ago.
func TestExpiredMakeRoom(t *testing.T) {
	clock := newClock()
	v := newVerifier(t, auth.Config{Secret: secret, Now: clock.Now})
	v.Shrink(few)
	for i := range few {
		raw := hs().token(map[string]any{"jti": i, "exp": start.Add(time.Minute).Unix()})
		accept(t, v, raw)
		accept(t, v, raw)
	}
	clock.Advance(2 * time.Minute)
	long := make([]string, few/4)
	principals := make([]*auth.Principal, len(long))
	for i := range long {
		long[i] = hs().token(map[string]any{"jti": i})
		principals[i] = accept(t, v, long[i])
	}
	for i, raw := range long {
		if accept(t, v, raw) != principals[i] {
			t.Fatal("a good token was forgotten while expired ones were kept")
		}
	}
}

// TestConcurrentUse: 128 clients with 64 tokens, all at once from the start.
func TestConcurrentUse(t *testing.T) {
	v := strict(t)
	tokens := make([]string, 64)
	for i := range tokens {
		tokens[i] = allSigners()[i%4].token(map[string]any{"sub": fmt.Sprint("worker-", i)})
	}
	var wait sync.WaitGroup
	for client := range 128 {
		wait.Go(func() {
			for i := range 200 {
				n := (client + i) % len(tokens)
				p, err := v.Verify(t.Context(), tokens[n])
				if err != nil || p.Subject != fmt.Sprint("worker-", n) {
					t.Errorf("Verify() = %v, %v, want worker-%d", p, err, n)
					return
				}
			}
		})
	}
	wait.Wait()
	if n := v.Cached(); n != len(tokens) {
		t.Errorf("%d tokens are remembered, want %d", n, len(tokens))
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret, Now: newClock().Now})
	raw := hs().token(map[string]any{"locks": []string{"orders:*", "a*c"}})
	ctx := t.Context()
	accept(t, v, raw)
	if n := testing.AllocsPerRun(100, func() {
		p, err := v.Verify(ctx, raw)
		if err != nil || !p.Allows(auth.LocksRead) || !p.MayUse("orders:1") || p.MayUse("axbxd") {
			t.Error("the token is no longer what it was")
		}
	}); n != 0 {
		t.Errorf("a hit makes %v allocations, want 0", n)
	}
}
