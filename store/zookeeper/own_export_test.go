package zookeeper

import "context"

// LoadBehind opens a store, and has something happen before it reads the store's own record.
func LoadBehind(ctx context.Context, cfg Config, happens func()) error {
	s := newStore(cfg)
	defer s.stop()
	s.reader.reads = newConnector("feed", cfg.Servers, access{}, s.reader.log, nil)
	defer s.reader.reads.close()
	if err := s.reader.makeNodes(ctx); err != nil {
		return err
	}
	if err := s.reader.loadEpoch(ctx); err != nil {
		return err
	}
	happens()
	return s.meta.Load(ctx, 0)
}

// EndCalls lets no connection for calls be opened any more, as a server with too many does.
func (s *Store) EndCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.prepare = func(context.Context, *link) error { return errHungUp }
	s.calls.current.fail(errHungUp)
}
