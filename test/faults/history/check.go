package history

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// MaxUnknown is the number of operations of unknown outcome on one lock above
// which a history says too little to count.
const MaxUnknown = 200

// The ways in which a check fails.
var (
	ErrNotLinearizable = errors.New("no order of the operations explains the answers")
	ErrCheckerTimeout  = errors.New("the checker ran out of time, which proves nothing")
	ErrTooManyUnknown  = errors.New("too many operations of unknown outcome")
)

// CheckOptions bounds a check and says where to put a picture of a failure.
type CheckOptions struct {
	Timeout time.Duration // for each lock
	Dir     string        // for <lock>.html; "" draws nothing
}

// Check judges the operations, lock by lock, against the model of a fenced lock.
func Check(ops []Op, options CheckOptions) error {
	var errs []error
	for _, one := range byLock(ops) {
		if err := checkLock(one, options); err != nil {
			errs = append(errs, fmt.Errorf("lock %s: %w", one[0].Lock, err))
		}
	}
	return errors.Join(errs...)
}

// byLock groups operations by lock, each group in the order of the calls.
func byLock(ops []Op) [][]Op {
	groups := map[string][]Op{}
	var names []string
	for _, op := range ops {
		if _, known := groups[op.Lock]; !known {
			names = append(names, op.Lock)
		}
		groups[op.Lock] = append(groups[op.Lock], op)
	}
	slices.Sort(names)
	var out [][]Op
	for _, name := range names {
		slices.SortStableFunc(groups[name], func(a, b Op) int { return int(a.Call - b.Call) })
		out = append(out, groups[name])
	}
	return out
}

func checkLock(ops []Op, options CheckOptions) error {
	unknown := 0
	for _, op := range ops {
		if op.Outcome == Unknown {
			unknown++
		}
	}
	if unknown > MaxUnknown {
		return fmt.Errorf("%w: %d of %d", ErrTooManyUnknown, unknown, len(ops))
	}
	m, prepared := model(), prepare(ops)
	switch porcupine.CheckOperationsTimeout(m, prepared, options.Timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w (%d operations)", ErrCheckerTimeout, len(ops))
	}
	_, info := porcupine.CheckOperationsVerbose(m, prepared, options.Timeout)
	err := fmt.Errorf("%w:\n%s", ErrNotLinearizable, explain(prepared, info))
	if options.Dir != "" {
		path := filepath.Join(options.Dir, ops[0].Lock+".html")
		err = errors.Join(err, porcupine.VisualizePath(m, info, path), fmt.Errorf("picture: %s", path))
	}
	return err
}

// prepare makes porcupine's operations. It leaves out those that forbid nothing, so that the
// checker need not try all their positions. One kind is an acquire or a renewal of unknown
// outcome: what it may have held may also have ended at any time, and a deadline that it may have
// moved need not have moved. The other is a refusal of an entry without a known id.
//
// A release of unknown outcome may take effect at any time after its call, but the next grant was
// possible only after it or without it: it ends there.
func prepare(ops []Op) []porcupine.Operation {
	var out []porcupine.Operation
	for _, op := range ops {
		if op.Outcome == Unknown && op.Kind != Release ||
			op.Kind == Acquire && op.Outcome != OK && op.Entry == "" {
			continue
		}
		end := op.Return
		if op.Outcome == Unknown {
			end = max(end, nextGrant(ops, fenceOf(ops, op.Entry)))
		}
		out = append(
			out,
			porcupine.Operation{ClientId: op.Client, Input: op, Call: int64(op.Call), Return: int64(end)},
		)
	}
	return out
}

func fenceOf(ops []Op, entry string) int64 {
	for _, op := range ops {
		if op.Kind == Acquire && op.Outcome == OK && op.Entry == entry {
			return op.Fence
		}
	}
	return math.MaxInt64
}

// nextGrant returns when the grant that followed fence was answered, or never.
func nextGrant(ops []Op, fence int64) time.Duration {
	next, at := int64(math.MaxInt64), time.Duration(math.MaxInt64)
	for _, op := range ops {
		if op.Kind == Acquire && op.Outcome == OK && op.Fence > fence && op.Fence < next {
			next, at = op.Fence, op.Return
		}
	}
	return at
}

// explain shows where the longest explanation that was found comes to its end.
func explain(all []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const show = 6
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, partial := range partition {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
	}
	explained := map[Op]bool{}
	for _, o := range longest {
		explained[o.Input.(Op)] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %d of %d operations have an order, which ends with\n", len(longest), len(all))
	for _, o := range longest[max(0, len(longest)-show):] {
		fmt.Fprintf(&b, "    %v\n", o.Input)
	}
	fmt.Fprintf(&b, "  after which none of these fits:\n")
	shown := 0
	for _, o := range all {
		if !explained[o.Input.(Op)] && shown < show {
			fmt.Fprintf(&b, "    %v\n", o.Input)
			shown++
		}
	}
	return b.String()
}
