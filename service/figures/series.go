package figures

import (
	"cmp"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// Step is the length of one cell of recent minutes, and HourStep of one of recent hours.
	Step     = 10 * time.Second
	HourStep = 5 * time.Minute

	// Steps is the number of cells: a quarter of an hour, or seven and a half.
	Steps = 90
)

// Cell counts the events of one step.
type Cell struct {
	Grants   uint32
	Releases uint32 // by clients
	Expiries uint32 // of holders
	Waits    Histogram
	Holds    Histogram

	waited, held float64 // entry-seconds
}

// Series are the last cells. The zero value is ready, with cells of a Step.
type Series struct {
	step    time.Duration // of one cell; 0 is Step
	cells   [Steps]*Cell  // indexed by step number; nil where nothing happened
	began   time.Time     // time of the first event
	last    int64         // the number of the newest step
	waiting int
	holding int
	since   int64 // in nanoseconds: levels are counted up to here
}

func (s *Series) each() int64 { return int64(cmp.Or(s.step, Step)) }

// number returns the number of the step of an instant. Steps begin together at all replicas, as
// far as their clocks agree.
func (s *Series) number(at time.Time) int64 { return at.UnixNano() / s.each() }

// at returns the cell of an instant, and drops old cells. If the clock was set back, it returns
// the newest cell.
func (s *Series) at(now time.Time) *Cell {
	s.forward(now)
	return s.cell(s.last)
}

func (s *Series) cell(n int64) *Cell {
	at := &s.cells[n%Steps]
	if *at == nil {
		*at = &Cell{}
	}
	return *at
}

// forward moves to the step of an instant.
func (s *Series) forward(now time.Time) {
	if s.began.IsZero() {
		s.began, s.since, s.last = now, now.UnixNano(), s.number(now)
	}
	s.settle(now.UnixNano())
	s.turn(s.number(now))
}

// turn empties the cells of new steps.
func (s *Series) turn(to int64) {
	for n := max(s.last+1, to-Steps+1); n <= to; n++ {
		s.cells[n%Steps] = nil
	}
	s.last = max(s.last, to)
}

// settle adds the entry-seconds up to now, to each step its own part.
func (s *Series) settle(now int64) {
	s.since = max(s.since, now-Steps*s.each())
	for s.waiting+s.holding > 0 && s.since < now {
		n := s.since / s.each()
		end := min((n+1)*s.each(), now)
		s.turn(n)
		span, c := time.Duration(end-s.since).Seconds(), s.cell(n)
		c.waited += float64(s.waiting) * span
		c.held += float64(s.holding) * span
		s.since = end
	}
	s.since = max(s.since, now)
}

// Granted counts a grant with its wait time.
func (s *Series) Granted(now time.Time, waited time.Duration) {
	c := s.at(now)
	c.Grants++
	c.Waits.Add(waited)
}

// Ended counts the end of a hold, with its reason and duration.
func (s *Series) Ended(now time.Time, why lock.Reason, held time.Duration) {
	c := s.at(now)
	c.Holds.Add(held)
	switch why {
	case lock.Released:
		c.Releases++
	case lock.Expired:
		c.Expiries++
	}
}

// Level records how many entries wait and how many claims hold from now on.
func (s *Series) Level(now time.Time, waiting, holding int) {
	s.forward(now)
	s.waiting, s.holding = waiting, holding
}

// Point is a cell as shown to a reader.
type Point struct {
	At       time.Time     // its start
	Over     time.Duration // what it covers: less than a step at both ends
	Grants   int
	Releases int
	Expiries int
	Waiting  float64 // average
	Holding  float64 // average
	Waits    Percentiles
	Holds    Percentiles
}

// Summary is everything that a series keeps.
type Summary struct {
	Since  time.Time // the start; zero if nothing was ever counted
	Whole  Point     // all steps together
	Points []Point   // the oldest first; the last one is not over. None before Since
}

// copy returns an independent series.
func (s *Series) copy() *Series {
	out := *s
	for i, c := range s.cells {
		if c != nil {
			out.cells[i] = new(*c)
		}
	}
	return &out
}

// Read returns the summary up to an instant. It changes the series.
func (s *Series) Read(now time.Time) (sum Summary) {
	if s.began.IsZero() {
		return sum
	}
	s.forward(now)
	first := max(s.last-Steps+1, s.number(s.began))
	sum.Since = time.Unix(0, first*s.each())
	if s.began.After(sum.Since) {
		sum.Since = s.began
	}
	all := &Cell{}
	for n := first; n <= s.last; n++ {
		c := s.cells[n%Steps]
		if c == nil {
			c = &Cell{}
		}
		begins := time.Unix(0, n*s.each())
		ends := time.Unix(0, (n+1)*s.each())
		sum.Points = append(sum.Points, c.point(begins, span(begins, ends, s.began, now)))
		all.add(c)
	}
	sum.Whole = all.point(sum.Since, now.Sub(sum.Since))
	return sum
}

// span returns how much of a step lies between two instants.
func span(begins, ends, from, now time.Time) time.Duration {
	if from.After(begins) {
		begins = from
	}
	if now.Before(ends) {
		ends = now
	}
	return ends.Sub(begins)
}

func (c *Cell) add(other *Cell) {
	c.Grants += other.Grants
	c.Releases += other.Releases
	c.Expiries += other.Expiries
	c.waited += other.waited
	c.held += other.held
	c.Waits.merge(&other.Waits)
	c.Holds.merge(&other.Holds)
}

func (c *Cell) point(at time.Time, over time.Duration) Point {
	p := Point{
		At: at, Over: over, Grants: int(c.Grants), Releases: int(c.Releases), Expiries: int(c.Expiries),
		Waits: c.Waits.Percentiles(), Holds: c.Holds.Percentiles(),
	}
	if over > 0 {
		p.Waiting, p.Holding = c.waited/over.Seconds(), c.held/over.Seconds()
	}
	return p
}
