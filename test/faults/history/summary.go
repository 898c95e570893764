package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Summary is the figures of a run.
type Summary struct {
	Ops, Grants, Unknown int
	Counts               map[string]int // by "kind outcome"
	LowestFence          int64          // of any grant
	HighestFence         int64
	MostUnknownOnALock   int
	LongestAcquire       time.Duration // from the first attempt to a grant
	LongestSilence       time.Duration // between two successes anywhere
}

// Summarize counts what happened.
func Summarize(ops []Op) Summary {
	s := Summary{Counts: map[string]int{}}
	unknown := map[string]int{}
	for _, op := range ops {
		s.Ops++
		s.Counts[string(op.Kind)+" "+string(op.Outcome)]++
		if op.Outcome == Unknown {
			s.Unknown++
			unknown[op.Lock]++
			s.MostUnknownOnALock = max(s.MostUnknownOnALock, unknown[op.Lock])
		}
		if op.Kind == Acquire && op.Outcome == OK {
			s.grant(op)
		}
	}
	s.LongestSilence = longestSilence(ops)
	return s
}

func (s *Summary) grant(op Op) {
	s.Grants++
	s.HighestFence = max(s.HighestFence, op.Fence)
	if s.LowestFence == 0 || op.Fence < s.LowestFence {
		s.LowestFence = op.Fence
	}
	s.LongestAcquire = max(s.LongestAcquire, op.Return-op.Call)
}

func longestSilence(ops []Op) (longest time.Duration) {
	var ends []time.Duration
	for _, op := range ops {
		if op.Outcome == OK {
			ends = append(ends, op.Return)
		}
	}
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		longest = max(longest, ends[i]-ends[i-1])
	}
	return longest
}

// String prints the figures on a few lines.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "%d operations, %d grants, fences %d to %d, %d of unknown outcome (at most %d on a lock)\n",
		s.Ops, s.Grants, s.LowestFence, s.HighestFence, s.Unknown, s.MostUnknownOnALock,
	)
	fmt.Fprintf(&b, "longest acquire %v, longest time without any success %v\n",
		s.LongestAcquire.Round(time.Millisecond), s.LongestSilence.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		fmt.Fprintf(&b, "%s: %d  ", name, s.Counts[name])
	}
	return b.String()
}
