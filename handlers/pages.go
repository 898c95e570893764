package handlers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
)

const (
	// maxRenderings bounds the bytes of the answers that are kept.
	maxRenderings = 16 << 20

	// A page is kept for sharedFor, or for sharedTimes as long as it took to make, so that no page
	// takes more than a part of a processor however often it is polled; at most for sharedAtMost.
	sharedFor    = 250 * time.Millisecond
	sharedTimes  = 10
	sharedAtMost = 5 * time.Second
)

// pages is the cache of the pages that operators look at: requests for the same page get the
// same bytes, which are made once.
type pages struct {
	flight singleflight.Group
	gate   *gate

	mu    sync.Mutex
	byKey map[string]*rendering
	bytes int
}

// rendering is an answer as text. It does not change.
type rendering struct {
	text  []byte
	tag   string    // the ETag
	until time.Time // when it is made again
}

func newPages(g *gate) *pages { return &pages{gate: g, byKey: map[string]*rendering{}} }

// get returns what was made for the key a moment ago, or has it made for the tenant. Requests for
// what is being made wait for it, and take no slot of the gate. Errors besides those of body:
// overloaded, and that of ctx.
func (p *pages) get(
	ctx context.Context,
	tenant, key string,
	body func() (any, error),
) (*rendering, error) {
	for {
		if made := p.recent(key, time.Now()); made != nil {
			return made, nil
		}
		mine := false
		made, err, _ := p.flight.Do(key, func() (any, error) {
			mine = true
			return p.make(ctx, tenant, key, body)
		})
		if err == nil {
			return made.(*rendering), nil
		}
		if mine || ctx.Err() != nil || !ofAnother(err) {
			return nil, err
		}
	}
}

// ofAnother reports whether an answer was not made for a reason of the request that made it: its
// client is gone, or its tenant asks for too much.
func ofAnother(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, lock.Overloaded)
}

// make makes the answer behind the gate.
func (p *pages) make(
	ctx context.Context,
	tenant, key string,
	body func() (any, error),
) (*rendering, error) {
	if err := p.gate.enter(ctx, tenant); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	if made := p.recent(key, time.Now()); made != nil {
		return made, nil
	}
	r, err := render(body)
	if err != nil {
		return nil, err
	}
	p.keep(key, r)
	return r, nil
}

func render(body func() (any, error)) (*rendering, error) {
	began := time.Now()
	value, err := body()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err = api.Encode(&out, value); err != nil {
		return nil, err
	}
	now := time.Now()
	kept := min(max(sharedFor, sharedTimes*now.Sub(began)), sharedAtMost)
	return &rendering{text: out.Bytes(), tag: tagOf(out.Bytes()), until: now.Add(kept)}, nil
}

func (p *pages) recent(key string, now time.Time) *rendering {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.byKey[key]; r != nil && now.Before(r.until) {
		return r
	}
	return nil
}

// keep keeps a rendering for as long as it is right, if there is room, and forgets those
// that are not any more.
func (p *pages) keep(key string, r *rendering) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for k, old := range p.byKey {
		if k == key || !now.Before(old.until) {
			p.bytes -= len(old.text)
			delete(p.byKey, k)
		}
	}
	if p.bytes+len(r.text) <= maxRenderings {
		p.byKey[key] = r
		p.bytes += len(r.text)
	}
}

// respondShared answers with what others who ask the same get too.
func respondShared(r *request, body func() (any, error)) error {
	made, err := r.endpoints.pages.get(r.context(), r.tenant(), sharedKey(r), body)
	if err != nil {
		return err
	}
	if unchanged(r, made.tag) {
		return nil
	}
	text := made.text
	if len(text) > smallAnswer && !r.bytes.take(r.tenant(), len(text)) {
		return errOverloaded("large answers")
	}
	r.send(http.StatusOK, "application/json", text)
	return nil
}

// sharedKey is the same for those who ask the same and may see the same.
func sharedKey(r *request) string {
	key := r.Request.URL.EscapedPath() + "?" + r.Request.URL.Query().Encode() + " "
	if !r.principal.MayOperate("") {
		key += r.principal.Tenant
	}
	if r.principal.Locks == nil {
		return key
	}
	key += " only"
	for _, p := range r.principal.Locks {
		key += " " + strconv.Quote(p.String()) // a pattern may have a space in it
	}
	return key
}
