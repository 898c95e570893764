package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/webhook"
)

var (
	failed = webhook.Result{Outcome: webhook.Failed}
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func TestSchedule(t *testing.T) {
	for name, test := range map[string]struct {
		random float64
		want   time.Duration // of all
	}{
		"without jitter": {0, 75*time.Hour + 35*time.Minute + 5*time.Second},
		"with most":      {0.5, (75*time.Hour + 35*time.Minute + 5*time.Second) * 11 / 10},
	} {
		now := noon
		p := webhook.Begin(now, time.Time{})
		for attempt, delay := range webhook.Delays() {
			if at := now.Add(
				delay + time.Duration(test.random*float64(delay)/5),
			); p.State != webhook.StatePending || !p.Due.Equal(at) {
				t.Fatalf("%s: attempt %d is %+v, want %s", name, attempt, p, at)
			}
			now = p.Due
			p = p.After(failed, now, test.random)
		}
		if p.State != webhook.StateFailed || p.Attempts != 10 || now.Sub(noon) != test.want {
			t.Errorf("%s: %+v after %s", name, p, now.Sub(noon))
		}
	}
}

func TestAfter(t *testing.T) {
	second := webhook.Progress{State: webhook.StatePending, Attempts: 1}
	throttled := func(after time.Duration) webhook.Result {
		return webhook.Result{Outcome: webhook.Throttled, RetryAfter: after}
	}
	due := func(p webhook.Progress, in time.Duration) webhook.Progress {
		p.Due, p.Attempts = noon.Add(in), p.Attempts+1
		return p
	}
	until := func(p webhook.Progress, in time.Duration) webhook.Progress {
		p.NotAfter = noon.Add(in)
		return p
	}
	as := func(p webhook.Progress, s webhook.State) webhook.Progress {
		p.State = s
		return p
	}
	for name, test := range map[string]struct {
		p    webhook.Progress
		r    webhook.Result
		want webhook.Progress
	}{
		"delivered": {
			second,
			webhook.Result{Outcome: webhook.Delivered},
			webhook.Progress{State: webhook.StateDelivered, Attempts: 2},
		},
		"gone": {
			second,
			webhook.Result{Outcome: webhook.Gone},
			webhook.Progress{State: webhook.StateGone, Attempts: 2},
		},
		"expired": {
			second,
			webhook.Result{Outcome: webhook.Expired},
			webhook.Progress{State: webhook.StateExpired, Attempts: 1},
		},
		"failed": {second, failed, due(second, 5*time.Minute)},
		"rejected goes on": {
			second, webhook.Result{Outcome: webhook.Rejected}, due(second, 5*time.Minute),
		},
		"interrupted": {
			second,
			webhook.Result{Outcome: webhook.Interrupted},
			webhook.Progress{State: webhook.StatePending, Attempts: 1, Due: noon},
		},
		"asks for more":   {second, throttled(time.Hour), due(second, time.Hour)},
		"asks for less":   {second, throttled(time.Second), due(second, 5*time.Minute)},
		"asks for a year": {second, throttled(365 * 24 * time.Hour), due(second, 24*time.Hour)},
		"asks with a 500": {
			second, webhook.Result{Outcome: webhook.Failed, RetryAfter: time.Hour}, due(second, time.Hour),
		},
		"would be just late": {
			until(second, 5*time.Minute), failed,
			as(due(until(second, 5*time.Minute), 5*time.Minute), webhook.StateExpired),
		},
		"is just in time": {
			until(second, 5*time.Minute+1), failed, due(until(second, 5*time.Minute+1), 5*time.Minute),
		},
		"made late by its ask": {
			until(second, time.Hour), throttled(time.Hour),
			as(due(until(second, time.Hour), time.Hour), webhook.StateExpired),
		},
	} {
		if diff := cmp.Diff(test.want, test.p.After(test.r, noon, 0)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if p := webhook.Begin(noon, noon); p.State != webhook.StateExpired {
		t.Errorf("begun too late: %+v", p)
	}
	// Jitter never makes an attempt come too early.
	if p := second.After(throttled(5*time.Minute+30*time.Second), noon, 0); p.Due.Before(
		noon.Add(5*time.Minute + 30*time.Second),
	) {
		t.Errorf("too early: %+v", p)
	}
}

// TestAfterAsked: an attempt that was asked for takes no step of the schedule, and the receiver may
// ask for more time in its answer.
func TestAfterAsked(t *testing.T) {
	last := webhook.Progress{State: webhook.StatePending, Attempts: 9, Due: noon.Add(time.Hour)}
	asks := func(wait time.Duration) webhook.Result {
		return webhook.Result{Outcome: webhook.Throttled, RetryAfter: wait}
	}
	later, dated := last, last
	later.Due = noon.Add(24 * time.Hour)
	dated.NotAfter = noon.Add(2 * time.Hour)
	late := dated
	late.State, late.Due = webhook.StateExpired, noon.Add(2*time.Hour)
	for name, test := range map[string]struct {
		p    webhook.Progress
		r    webhook.Result
		want webhook.Progress
	}{
		"failed":            {last, failed, last},
		"rejected":          {last, webhook.Result{Outcome: webhook.Rejected}, last},
		"asks for less":     {last, asks(time.Minute), last},
		"asks for a year":   {last, asks(365 * 24 * time.Hour), later},
		"asks for too much": {dated, asks(2 * time.Hour), late},
		"delivered": {
			last,
			webhook.Result{Outcome: webhook.Delivered},
			webhook.Progress{State: webhook.StateDelivered, Attempts: 10, Due: last.Due},
		},
		"gone": {
			last,
			webhook.Result{Outcome: webhook.Gone},
			webhook.Progress{State: webhook.StateGone, Attempts: 10, Due: last.Due},
		},
	} {
		if diff := cmp.Diff(test.want, test.p.AfterAsked(test.r, noon)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHealth(t *testing.T) {
	const day = 24 * time.Hour
	type at struct {
		in time.Duration
		webhook.Outcome
	}
	failures := func(n int, from, every time.Duration) (all []at) {
		for i := range n {
			all = append(all, at{from + time.Duration(i)*every, webhook.Failed})
		}
		return all
	}
	for name, test := range map[string]struct {
		attempts []at
		want     webhook.DisabledBecause
	}{
		"five days":       {failures(11, 0, 12*time.Hour), webhook.DisabledFailing},
		"just less":       {failures(11, 0, 12*time.Hour-1), webhook.NotDisabled},
		"many in an hour": {failures(3600, 0, time.Second), webhook.NotDisabled},
		"few in a month":  {failures(9, 0, 4*day), webhook.NotDisabled},
		"the clock jumps": {
			append(failures(3, 0, time.Hour), failures(1, 30*day, 0)...), webhook.NotDisabled,
		},
		"the clock is set back": {
			append(failures(1, 0, 0), failures(20, -4*day, 5*time.Hour)...), webhook.NotDisabled,
		},
		"one success": {
			append(
				append(failures(10, 0, 12*time.Hour), at{110 * time.Hour, webhook.Delivered}),
				failures(10, 5*day, time.Hour)...,
			),
			webhook.NotDisabled,
		},
		"interrupted is no fault": {
			append(
				failures(9, 0, 12*time.Hour), at{6 * day, webhook.Interrupted}, at{6 * day, webhook.Expired},
			),
			webhook.NotDisabled,
		},
		"throttled and rejected": {
			append(failures(8, 0, time.Hour), at{day, webhook.Throttled}, at{5 * day, webhook.Rejected}),
			webhook.DisabledFailing,
		},
		"gone": {[]at{{0, webhook.Gone}}, webhook.DisabledGone},
		"gone stays": {
			[]at{{0, webhook.Gone}, {1, webhook.Delivered}, {2, webhook.Failed}}, webhook.DisabledGone,
		},
	} {
		var h webhook.Health
		for _, a := range test.attempts {
			h = h.After(webhook.Result{Outcome: a.Outcome}, noon.Add(a.in))
		}
		if h.Disabled != test.want {
			t.Errorf("%s: %+v", name, h)
		}
	}
}
