package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

func calledAt(url string) service.AcquireRequest {
	req := async(keyed("orders:1", time.Minute, "k"))
	req.Callback = &lock.Callback{URL: url, Secret: "current"}
	return req
}

// TestKeyWithAnotherCallback: the callback is a parameter that a retry must repeat.
func TestKeyWithAnotherCallback(t *testing.T) {
	refusesOthers(t, calledAt("https://example.org/a"), map[string]func(*service.AcquireRequest){
		"another": func(r *service.AcquireRequest) {
			r.Callback = &lock.Callback{URL: "https://example.org/b", Secret: "current"}
		},
		"none": func(r *service.AcquireRequest) { r.Callback = nil },
	})
}

// TestKeyWithAnotherCallbackSecret: a retry after a rotation is the same entry.
func TestKeyWithAnotherCallbackSecret(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		req := calledAt("https://example.org/a")
		first := r.hold(req)
		if c := first.Entry.Callback; c == nil || *c != *req.Callback {
			t.Errorf("the callback is %v", c)
		}
		req.Callback = &lock.Callback{URL: req.Callback.URL, Secret: "next"}
		same(t, first, r.hold(req))
	})
}

// TestBadCallbacks: only an async request may have a callback.
func TestBadCallbacks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		waits := calledAt("https://example.org/a")
		waits.Async = false
		for name, req := range map[string]service.AcquireRequest{
			"not async": waits, "no URL": calledAt(""),
			"long": calledAt(strings.Repeat("a", lock.MaxCallbackURL+1)),
		} {
			if e := r.start(req).fails(lock.InvalidRequest); e.Field != "callback_url" {
				t.Errorf("%s: %v", name, e)
			}
		}
	})
}
