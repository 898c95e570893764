package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// checkVersions warns of servers that are too old for the store. It checks once, at the start,
// the servers that answer.
func (c *Conn) checkVersions(closing context.Context, log *slog.Logger) {
	if c.version == nil {
		return
	}
	for _, endpoint := range c.endpoints {
		ctx, cancel := context.WithTimeout(closing, attemptTimeout)
		version, err := c.version(ctx, endpoint)
		cancel()
		switch {
		case closing.Err() != nil:
			return
		case err != nil:
			log.Info("the version of an etcd server is not known", "server", endpoint, "error", err)
		case !supported(version):
			log.Warn("an etcd server is too old: it may lose watch events, read what is stale, "+
				"or fill up beyond its quota",
				"server", endpoint, "version", version, "needed", "3.6.14 of 3.6, 3.7.1 of 3.7, or later")
		}
	}
}

// supported reports whether a version of etcd, such as 3.7.1, has what the store needs. Before
// 3.7.1, and 3.6.14 of the older line, the quota did not count nested transactions, which the
// store uses (etcd #22134).
func supported(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return true // a custom build
	}
	switch {
	case major != 3 || minor > 7:
		return major >= 3
	case minor == 7:
		return patch >= 1
	case minor == 6:
		return patch >= 14
	}
	return false
}

// warnOfElections returns a function that warns once of servers that keep leases for longer than
// requested: etcd silently grants none under one and a half election timeouts.
func warnOfElections(log *slog.Logger) func(granted time.Duration) {
	var once sync.Once
	return func(granted time.Duration) {
		once.Do(func() {
			log.Warn("etcd keeps leases for longer than asked: a dead holder or replica is noticed late, "+
				"and async entries and webhooks are taken over late; lower --election-timeout of the servers",
				"least_lease", granted.String(),
				"election_timeout", "1333 ms at most, etcd's default is 1000 ms")
		})
	}
}
