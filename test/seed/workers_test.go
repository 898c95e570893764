package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// nobody is a server that is away.
type nobody struct{ asked int }

func (n *nobody) RoundTrip(*http.Request) (*http.Response, error) {
	n.asked++
	return nil, errors.New("connection refused")
}

// TestPausesWhileTheServerIsAway: what cannot be reached is asked ever less often.
func TestPausesWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		away := &nobody{}
		c := &client{url: "http://away", http: &http.Client{Transport: away}}
		w := workers(1, 0, 1)[0]
		w.work(ctx, c)
		if away.asked < 10 || away.asked > 60 {
			t.Errorf("asked %d times in ten minutes", away.asked)
		}
		if said := c.counts(); !strings.HasSuffix(said, "connection refused") {
			t.Errorf("it does not say why: %s", said)
		}
		before := c.failed.Load()
		if c.acquire(ctx, "/locks/a", nil); c.failed.Load() != before {
			t.Error("what is given up at the end counts as failed")
		}
	})
}

// TestHoldersOfARun: no holder has the name of one of another run, or of its own.
func TestHoldersOfARun(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for run := range uint16(2) {
		for _, w := range workers(12, 60, run) {
			if seen[w.name] {
				t.Errorf("%s is there twice", w.name)
			}
			seen[w.name] = true
		}
	}
}
