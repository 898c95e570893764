package handlers

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/service/board"
)

// maxRenderings is how many bytes of renderings are kept for others who ask the same.
const maxRenderings = 16 << 20

// pages shares what operators are shown: who asks the same within a moment gets the same
// bytes, which are made once.
type pages struct {
	flight singleflight.Group

	mu    sync.Mutex
	byKey map[string]*rendering
	bytes int
}

// rendering is an answer as text, and what it is made of, for those who are told only what
// has changed. It does not change.
type rendering struct {
	value   any
	text    []byte
	drawing int64

	once  sync.Once
	parts *parts
}

// get returns what was made for the key a moment ago, or has it made.
func (p *pages) get(key string, body func() (any, error)) (*rendering, error) {
	if made := p.recent(key, time.Now()); made != nil {
		return made, nil
	}
	made, err, _ := p.flight.Do(key, func() (any, error) {
		r := &rendering{drawing: board.Drawing(time.Now())}
		var err error
		if r.value, err = body(); err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err = api.Encode(&out, r.value); err != nil {
			return nil, err
		}
		r.text = out.Bytes()
		p.keep(key, r)
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*rendering), nil
}

func (p *pages) recent(key string, now time.Time) *rendering {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.byKey[key]; r != nil && r.drawing == board.Drawing(now) {
		return r
	}
	return nil
}

// keep keeps a rendering for as long as it is right, if there is room, and forgets those
// that are not any more.
func (p *pages) keep(key string, r *rendering) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, old := range p.byKey {
		if k == key || old.drawing != r.drawing {
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
func (r *request) respondShared(body func() (any, error)) error {
	made, err := r.endpoints.pages.get(r.sharedKey(), body)
	if err != nil {
		return err
	}
	text := made.text
	if len(text) > smallAnswer && !r.take(len(text), false) {
		return errLargeAnswers()
	}
	r.Data(http.StatusOK, "application/json", text)
	return nil
}

// sharedKey is the same for those who ask the same and may see the same.
func (r *request) sharedKey() string {
	key := r.Request.URL.EscapedPath() + "?" + r.Request.URL.Query().Encode() + " "
	if !r.principal.MayOperate("") {
		key += r.principal.Tenant
	}
	if r.principal.Locks == nil {
		return key
	}
	key += " only"
	for _, p := range r.principal.Locks {
		key += " " + p.String()
	}
	return key
}
