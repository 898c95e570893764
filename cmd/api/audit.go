package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
)

// newAudit returns what is on record of operators, which one of the replicas trims until stop
// is called, which waits for that.
func newAudit(
	c *config, t *telemetry.Telemetry, records store.RecordStore, replicas *replicas.List,
) (l *audit.Log, stop func()) {
	l = audit.NewLog(records, time.Duration(c.auditRetention), nil)
	return l, background(func(ctx context.Context) {
		l.Run(ctx, func() bool { return replicas.Sharing().Does("audit") }, t.Logger())
	})
}

// days is a time that is given in whole days, such as 30d.
type days time.Duration

const day = 24 * time.Hour

// String implements pflag.Value.
func (d *days) String() string { return fmt.Sprintf("%dd", time.Duration(*d)/day) }

// Type implements pflag.Value.
func (*days) Type() string { return "days" }

// Set implements pflag.Value.
func (d *days) Set(text string) error {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 16)
	if err != nil || !strings.HasSuffix(text, "d") {
		return errors.New("must be a number of days, such as 30d")
	}
	*d = days(time.Duration(n) * day)
	return nil
}

func (d days) check(flagName string) error {
	if time.Duration(d) < audit.MinAge || time.Duration(d) > audit.MaxAge {
		return usagef("--%s: must be from %dd to %dd", flagName, audit.MinAge/day, audit.MaxAge/day)
	}
	return nil
}
