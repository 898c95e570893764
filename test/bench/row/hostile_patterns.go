package row

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// patternWays have patterns held against names that are nearly like them, for which that takes longest.
func patternWays(b *bench) []hostileWay {
	const workers = "locks:read locks:write"
	return []hostileWay{
		{name: "lists by dear patterns", atOnce: hostileAtOnce, prepare: func(ctx context.Context, a *attack) error {
			if err := a.fillLong(ctx, min(b.Entries, 20_000)); err != nil {
				return err
			}
			return a.become(workers, dearPatterns(64))
		}, attack: asks("/locks?limit=1000")},
		{name: "orders of locks by dear patterns", atOnce: hostileAtOnce, prepare: func(ctx context.Context, a *attack) error {
			if err := a.teachOrders(ctx, 1000); err != nil {
				return err
			}
			return a.become("tenant-admin", dearPatterns(64))
		}, attack: asks("/admin/lock-order?limit=1")},
		{name: "searches of an operator", atOnce: hostileAtOnce, prepare: func(ctx context.Context, a *attack) error {
			if err := a.fillLong(ctx, min(b.Entries, 30_000)); err != nil {
				return err
			}
			return a.become("tenant-admin", nil)
		}, attack: func(ctx context.Context, a *attack, i, n int) {
			asks(fmt.Sprintf("/admin/locks?limit=1&sort=-held_for&search=*%s%dn%d*", strings.Repeat("a", 100), i, n))(ctx, a, i, n)
		}},
		{name: "streams by dear patterns", atOnce: hostileAtOnce, prepare: followByPatterns, attack: func(ctx context.Context, a *attack, i, _ int) {
			path := "/locks/" + longName(i)
			if token, _ := a.do(ctx, http.MethodPost, path, "{}"); token != "" {
				_, _ = a.do(ctx, http.MethodDelete, path, "", "Lock-Token", token)
			}
		}},
		{name: "replays by dear patterns", atOnce: 90, prepare: func(ctx context.Context, a *attack) error {
			return a.fillLong(ctx, min(b.Entries, 20_000))
		}, attack: beginsAnew(followed(), "Last-Event-ID", "2-0")},
		{name: "streams begun anew", atOnce: 90, attack: beginsAnew("/events")}, // what the connections of replays do alone
		{name: "connections begun anew", atOnce: 90, attack: connectsAnew},      // what those of streams do alone
	}
}

// beginsAnew follows what happens for half a second, as all others do at the same time.
func beginsAnew(path string, header ...string) func(context.Context, *attack, int, int) {
	return func(ctx context.Context, a *attack, _, _ int) {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		_, _ = a.do(ctx, http.MethodGet, path, "", header...)
	}
}

// connectsAnew asks for next to nothing twice a second over a connection of its own, as all others do at the same time.
func connectsAnew(ctx context.Context, a *attack, _, _ int) {
	next := time.NewTimer(500 * time.Millisecond)
	defer next.Stop()
	_, _ = a.do(ctx, http.MethodGet, "/locks/nothing", "", "Connection", "close")
	select {
	case <-next.C:
	case <-ctx.Done():
	}
}

func asks(path string) func(context.Context, *attack, int, int) {
	return func(ctx context.Context, a *attack, _, _ int) { _, _ = a.do(ctx, http.MethodGet, path, "") }
}

// become goes on with another bearer token.
func (a *attack) become(scope string, locks []string) (err error) {
	a.bearer, err = a.within(scope, locks)
	return err
}

// longName is nearly like what dearPatterns look for.
func longName(i int) string { return fmt.Sprintf("%s%06d", strings.Repeat("a", 180), i) }

func dearPatterns(n int) (all []string) {
	for i := range n {
		all = append(all, "*"+strings.Repeat("a", 40+i)+"b*")
	}
	return all
}

// followed is events by as many patterns as a query may have.
func followed() string { return "/events?locks=" + strings.Join(dearPatterns(40)[32:], ",") }

func (a *attack) fillLong(ctx context.Context, entries int) error {
	var all sync.WaitGroup
	for i := range hostileAtOnce {
		all.Go(func() {
			for n := i; n < entries && ctx.Err() == nil; n += hostileAtOnce {
				_, _ = a.do(ctx, http.MethodPost, "/locks/"+longName(n), `{"ttl_seconds":3600}`)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// teachOrders has so many holders take two locks each.
func (a *attack) teachOrders(ctx context.Context, holders int) error {
	var all sync.WaitGroup
	for i := range hostileAtOnce {
		all.Go(func() {
			for n := i; n < holders && ctx.Err() == nil; n += hostileAtOnce {
				for _, last := range []string{"y", "z"} {
					_, _ = a.do(ctx, http.MethodPost, "/locks/"+longName(n)+last, fmt.Sprintf(`{"ttl_seconds":3600,"holder":"h%d"}`, n))
				}
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// followByPatterns follows events nearly as often as a tenant may, and reads what is told.
func followByPatterns(ctx context.Context, a *attack) error {
	for range 99 {
		conn, err := a.dial(ctx, "GET "+followed()+" HTTP/1.1\r\n")
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends the reading
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
	return nil
}
