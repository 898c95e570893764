package memory

import (
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// ConnectOlder is [Server.Connect] for a client that understands forms only up to the given one.
func (s *Server) ConnectOlder(w Wire, form int) (*Client, error) {
	if newer := s.newerThan(form); newer != nil {
		return nil, newer
	}
	c := s.Connect(w)
	c.understood = form
	return c, nil
}

// newerThan returns an error if a client that understands forms only up to understood must not
// use the server.
func (s *Server) newerThan(understood int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newer(understood)
}

func (s *Server) newer(understood int) error {
	if s.form > understood {
		return &store.NewerFormError{Form: s.form, Understood: understood}
	}
	return nil
}

// require records the form of the next write. Feeds of clients that do not understand it list
// again; others continue.
func (s *Server) require(form, understood int) error {
	s.form = max(s.form, form)
	return s.newer(understood)
}

func (c *Client) refusedAsNewer() error {
	if newer := c.server.newerThan(c.understood); newer != nil {
		return newerRefusal(newer)
	}
	return nil
}

func newerRefusal(newer error) error {
	return &lock.Error{
		Code:       lock.StoreUnavailable,
		Detail:     newer.Error(),
		RetryAfter: retryPause,
		Cause:      newer,
	}
}

// read returns the entry as the client understands it.
func (c *Client) read(e *lock.Entry) *lock.Entry {
	if e == nil || store.FormOf(e) <= c.understood {
		return e
	}
	return store.Newer(store.Key{Tenant: e.Tenant, Lock: e.Name(), ID: e.ID}, e.Number, e.Handle)
}

func (c *Client) readAll(entries []*lock.Entry) []*lock.Entry {
	for i, e := range entries {
		entries[i] = c.read(e)
	}
	return entries
}

// readRun returns the step as the client understands it; all clients share the history.
func (c *Client) readRun(r Run) Run {
	changes := make([]store.Change, len(r.Changes))
	for i, change := range r.Changes {
		changes[i] = change
		changes[i].Joined = c.read(change.Joined)
	}
	r.Changes = changes
	return r
}
