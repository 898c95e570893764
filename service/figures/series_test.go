package figures_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

var start = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

// TestSteps: an event counts in its step, and a waiter in each step for its part.
func TestSteps(t *testing.T) {
	var s figures.Series
	s.Level(after(0), 2, 1)
	s.Granted(after(time.Second), 4*time.Millisecond)
	s.Level(after(15*time.Second), 1, 5)
	s.Ended(after(12*time.Second), lock.Released, time.Second)
	s.Ended(after(25*time.Second), lock.Expired, 2*time.Second)
	sum := s.Read(after(26 * time.Second))
	if len(sum.Points) != 3 || !sum.Since.Equal(start) {
		t.Fatalf("%d points since %v", len(sum.Points), sum.Since)
	}
	one, two, three := sum.Points[0], sum.Points[1], sum.Points[2]
	if one.Grants != 1 || two.Releases != 1 || three.Expiries != 1 ||
		one.Releases+one.Expiries+two.Grants+three.Grants != 0 {
		t.Errorf("%+v", sum.Points)
	}
	if one.Waiting != 2 || two.Waiting != 1.5 || three.Waiting != 1 {
		t.Errorf("%v, %v and %v wait, want 2, 1.5 and 1", one.Waiting, two.Waiting, three.Waiting)
	}
	if one.Holding != 1 || two.Holding != 3 || three.Holding != 5 {
		t.Errorf("%v, %v and %v hold, want 1, 3 and 5", one.Holding, two.Holding, three.Holding)
	}
	if w := sum.Whole; w.Grants != 1 || w.Releases != 1 || w.Expiries != 1 || w.Waits.Samples != 1 ||
		w.Holds.Samples != 2 {
		t.Errorf("all: %+v", w)
	}
	if !one.At.Equal(start) || !three.At.Equal(after(20*time.Second)) {
		t.Errorf("steps begin at %v and %v", one.At, three.At)
	}
}

// TestQuarterOfAnHour: the series drops what is older, even after a long time without events.
func TestQuarterOfAnHour(t *testing.T) {
	var s figures.Series
	s.Granted(after(0), 0)
	for i := range 200 {
		s.Granted(after(time.Duration(i)*figures.Step), 0)
	}
	sum := s.Read(after(199 * figures.Step))
	if len(sum.Points) != figures.Steps || sum.Whole.Grants != figures.Steps {
		t.Errorf("%d points with %d grants", len(sum.Points), sum.Whole.Grants)
	}
	if sum = s.Read(after(time.Hour)); sum.Whole.Grants != 0 || len(sum.Points) != figures.Steps {
		t.Errorf("an hour later there are %d grants in %d points", sum.Whole.Grants, len(sum.Points))
	}
	s.Level(after(time.Hour), 3, 0)
	if sum = s.Read(after(3 * time.Hour)); math.Abs(sum.Whole.Waiting-3) > 0.05 {
		t.Errorf("%v have waited all the time, want 3", sum.Whole.Waiting)
	}
	s.Level(after(3*time.Hour), 0, 2)
	if sum = s.Read(after(5 * time.Hour)); math.Abs(sum.Whole.Holding-2) > 0.05 {
		t.Errorf("%v have held all the time, want 2", sum.Whole.Holding)
	}
}

// TestHours: what the minutes have dropped is still in the hours, of a tenant and of all, and they
// are bounded too.
func TestHours(t *testing.T) {
	f := figures.New(0)
	granted := &lock.Event{Kind: lock.EventAcquired, At: start, Entry: &lock.Entry{Tenant: "acme"}}
	f.Happened(granted, time.Second, nil)
	f.Level("acme", 3, 1, after(time.Minute))
	later := after(2*time.Hour + time.Minute)
	for _, tenant := range []string{"acme", ""} {
		if sum := f.Series(tenant, figures.Step, later); sum.Whole.Grants != 0 {
			t.Errorf("%d grants in the minutes of %q, want 0", sum.Whole.Grants, tenant)
		}
		sum := f.Series(tenant, figures.HourStep, later)
		if len(sum.Points) != 25 || sum.Points[0].Grants != 1 || sum.Whole.Grants != 1 {
			t.Fatalf("the hours of %q are %+v", tenant, sum)
		}
		if w := sum.Points[24].Waiting; math.Abs(w-3) > 0.01 || sum.Points[24].Over != time.Minute {
			t.Errorf("%v wait in the last step of %q, want 3", w, tenant)
		}
		sum = f.Series(tenant, figures.HourStep, after(24*time.Hour))
		if len(sum.Points) != figures.Steps || sum.Whole.Grants != 0 {
			t.Errorf("a day later, %q has %d points", tenant, len(sum.Points))
		}
	}
}

// TestClockSetBack: nothing is lost and nothing fails.
func TestClockSetBack(t *testing.T) {
	var s figures.Series
	s.Level(after(time.Minute), 1, 0)
	s.Granted(after(0), 0)
	s.Level(after(-time.Hour), 2, 0)
	if sum := s.Read(after(2 * time.Minute)); sum.Whole.Grants != 1 {
		t.Errorf("%+v", sum.Whole)
	}
}

// TestPercentiles are right within a factor of 1.5.
func TestPercentiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h figures.Histogram
		d := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(20*time.Hour)).Draw(t, "d"))
		n := rapid.IntRange(1, 100).Draw(t, "n")
		for range n {
			h.Add(d)
		}
		h.Add(0)
		p := h.Percentiles()
		if ratio := float64(p.P90) / float64(d); n > 20 && (ratio < 0.66 || ratio > 1.51) ||
			p.Samples != n+1 || p.P99 < p.P50 {
			t.Fatalf("%v of %v: %+v", n, d, p)
		}
	})
}
