package outbox

import (
	"testing"
	"time"
)

// TestKeepsInASecond: after a while without any a tenant has some at once, and no more after a longer time.
func TestKeepsInASecond(t *testing.T) {
	now := time.Now()
	var k keeping
	takes := func(tenant string, after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		n := 0
		for n < 10*keepsOfTenant && k.take(tenant, now) {
			n++
		}
		if n != want {
			t.Errorf("%s puts %d into the store at once, want %d", tenant, n, want)
		}
	}
	takes("acme", 0, keepsAtOnce+1)
	takes("acme", 0, 0)
	takes("bolt", 0, keepsAtOnce+1)
	takes("acme", 10*time.Second/keepsOfTenant, 10)
	takes("acme", time.Hour, keepsAtOnce+1)
}

// TestKeepsOfManyOwners: those with whom some wait have turns at an even pace, and nobody comes before them. What they
// leave is not made up for.
func TestKeepsOfManyOwners(t *testing.T) {
	const each = time.Second / keepsOfTenant
	now := time.Now()
	var k keeping
	k.wait("acme", 1)
	if k.take("acme", now) {
		t.Error("one that came later need not wait")
	}
	for i := 1; i <= 5; i++ {
		if after := k.reserve("acme", now).Sub(now); after != time.Duration(i)*each {
			t.Errorf("turn %d is after %v", i, after)
		}
	}
	if after := k.reserve("bolt", now).Sub(now); after != each {
		t.Errorf("the first turn of another tenant is after %v", after)
	}
	now = now.Add(time.Minute)
	if after := k.reserve("acme", now).Sub(now); after != each {
		t.Errorf("the first turn after a minute is after %v", after)
	}
	k.wait("acme", -1)
	if k.take("acme", now) {
		t.Error("what the owners have had kept is not counted")
	}
	if !k.take("acme", now.Add(each)) {
		t.Error("none may be kept when nobody waits any more")
	}
}

// TestKeepingForgets: it remembers nobody of whom nothing is left to know.
func TestKeepingForgets(t *testing.T) {
	now := time.Now()
	var k keeping
	k.take("takes", now)
	k.wait("waits", 1)
	k.owe("owes", 1)
	k.owe("owed", 1)
	k.owe("owed", -1)
	if k.forget(now); k.of["takes"] == nil || k.of["waits"] == nil || k.of["owes"] == nil || k.of["owed"] != nil {
		t.Errorf("it knows of %v", k.of)
	}
	k.wait("waits", -1)
	k.owe("owes", -1)
	if k.forget(now.Add(2 * time.Second)); len(k.of) != 0 {
		t.Errorf("it knows of %v", k.of)
	}
}
