package row

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// ran returns jobs of which the one with fence i began and was released at these seconds.
func ran(want int, at ...[2]int) *jobs {
	j := newJobs(want, nil)
	start := time.Now()
	for i, of := range at {
		j.called[fmt.Sprint(i)] = &job{
			entry: fmt.Sprint(i), fence: int64(i),
			began: start.Add(time.Duration(of[0]) * time.Second), released: start.Add(time.Duration(of[1]) * time.Second),
		}
	}
	return j
}

func TestJobsAreChecked(t *testing.T) {
	var first [][2]int // of as many as there are places; the one with fence 1 is the first to end
	for i := range batchAt {
		first = append(first, [2]int{0, 10 + i})
	}
	first[0], first[1] = first[1], first[0]
	good := ran(batchAt+2, append(first, [2]int{11, 50}, [2]int{12, 60})...)
	if wrong := good.check(); wrong != nil {
		t.Error(wrong)
	}
	if most := good.turn.Percentile(100); good.turn.Count() != 2 || most > 1100*time.Millisecond {
		t.Errorf("%d turns, of %v at most, want two of 1 s", good.turn.Count(), most)
	}
	for name, j := range map[string]*jobs{
		"before its turn":              ran(batchAt+1, append(first[:batchAt:batchAt], [2]int{9, 50})...),
		"calls for":                    ran(batchAt+1, first...),
		"16 calls for 15 entries":      twice(ran(batchAt, first...)),
		"lock.wait_timeout of entry-7": ended(ran(batchAt, first...)),
	} {
		if wrong := strings.Join(j.check(), "; "); !strings.Contains(wrong, name) {
			t.Errorf("%q, want %q", wrong, name)
		}
	}
}

func twice(j *jobs) *jobs {
	j.called["1"].entry = "2"
	return j
}

func ended(j *jobs) *jobs {
	j.wrong = append(j.wrong, "lock.wait_timeout of entry-7")
	return j
}

func acquired(id string, fence int) []byte {
	return fmt.Appendf(nil, `{"type":"lock.acquired","data":{"lock":"l","entry":{"id":%q,"fence":%d}}}`, id, fence)
}

func TestTurnsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		told  [][]byte // after a, which holds, was released; b and c wait
		fault string
	}{
		"in order":            {[][]byte{acquired("b", 7)}, ""},
		"somebody else":       {[][]byte{acquired("x", 7)}, "l was granted to x, which waits: false"},
		"twice":               {[][]byte{acquired("b", 7), acquired("b", 7)}, "waits: false"},
		"two at once":         {[][]byte{acquired("b", 7), acquired("c", 8)}, "held: true"},
		"no greater fence":    {[][]byte{acquired("b", 5)}, "fence 5 after 5"},
		"an end of another":   {[][]byte{[]byte(`{"type":"lock.expired","data":{"lock":"l","entry":{"id":"b"}}}`)}, "lock.expired b of l"},
		"something else":      {[][]byte{[]byte(`{`)}, "unexpected end"},
		"something is missed": {[][]byte{[]byte(`{"type":"events.missed","data":{}}`)}, "events.missed"},
	} {
		t.Run(name, func(t *testing.T) {
			turns := newTurns()
			turns.fences["l"] = 5
			for _, id := range []string{"b", "c"} {
				turns.queue(side.Ticket{ID: id, Name: "l"})
			}
			turns.sent["l"] = time.Now()
			for _, data := range tt.told {
				turns.tell(data)
			}
			_, _, faults := turns.sofar()
			if got := strings.Join(faults, "; "); tt.fault == "" && got != "" || !strings.Contains(got, tt.fault) {
				t.Errorf("%q, want %q", got, tt.fault)
			}
		})
	}
}

func TestScreenTakesTheFirstThatShows(t *testing.T) {
	start := time.Now()
	at := func(revision, seconds int) seenAt {
		return seenAt{int64(revision), start.Add(time.Duration(seconds) * time.Second)}
	}
	s := screen{told: []seenAt{at(3, 1), at(7, 4), at(9, 9)}}
	if !s.shows(9) || s.shows(10) {
		t.Error("9 is shown, 10 is not")
	}
	shown := load.NewHistogram()
	s.take([]seenAt{at(5, 2), at(7, 3), at(8, 3)}, shown) // after 2, 1 and 6 s
	got := []time.Duration{shown.Percentile(10).Round(time.Second), shown.Percentile(50).Round(time.Second), shown.Percentile(100).Round(time.Second)}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 6 * time.Second}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMarksKnowTheirCycles(t *testing.T) {
	m := newMarks()
	m.start = m.start.Add(-time.Minute)
	sent := m.of("12")
	sent[0].Store(int64(59 * time.Second)) // a second ago
	sent[1].Store(int64(58 * time.Second))
	m.read(3, []byte(`{"type":"lock.released","timestamp":"t","data":{"number":7,"lock":"told:12","entry":{}}}`))
	if all := m.all(); all.Count() != 1 || all.Percentile(50) < 1900*time.Millisecond {
		t.Errorf("%d of %v", all.Count(), all.Percentile(50))
	}
	m.reset()
	m.read(3, []byte(`{"type":"lock.acquired","data":{"lock":"told:12"}}`))
	m.read(3, []byte(`{"type":"lock.acquired","data":{"lock":"other:12"}}`))
	m.read(3, []byte(`{"type":"lock.acquired","data":{"lock":"told:x"}}`))
	if all := m.all(); all.Count() != 1 || all.Percentile(50) > 1900*time.Millisecond {
		t.Errorf("%d of %v", all.Count(), all.Percentile(50))
	}
}
