package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// TestExplore plays all histories of each scenario that deviate in at most EXPLORE_DEVIATIONS
// points from the ordinary order. Each scenario has a process of its own.
func TestExplore(t *testing.T) {
	var all tally
	t.Cleanup(func() {
		t.Logf("%d scenarios, %d points, %d histories", all.scenarios, all.points, all.histories)
	})
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			all.add(exploreElsewhere(t, s.name))
		})
	}
}

// tally counts what several processes have explored.
type tally struct {
	mu                           sync.Mutex
	scenarios, points, histories int
}

// add takes what a process says.
func (a *tally) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var points, histories int
	if n, _ := fmt.Sscanf(text, "%d points, %d histories", &points, &histories); n == 2 {
		a.scenarios++
		a.points += points
		a.histories += histories
	}
}

// exploreElsewhere has a process of its own explore a scenario, and returns what it says.
func exploreElsewhere(t *testing.T, name string) (text string) {
	t.Helper()
	at, limit := t.TempDir()+"/at", time.Duration(0)
	if end, ok := t.Deadline(); ok {
		limit = max(time.Second, time.Until(end)-5*time.Second)
	}
	cmd := exec.Command(
		os.Args[0], "-test.run=^TestScenario$", "-test.v", fmt.Sprint("-test.timeout=", limit),
	)
	cmd.Env = append(
		os.Environ(), "EXPLORE_SCENARIO="+name, "EXPLORE_AT="+at, "GOMAXPROCS=1", "GOGC=400",
		"GODEBUG=adaptivestackstart=1,asyncpreemptoff=1",
	)
	said, err := cmd.CombinedOutput()
	for line := range bytes.Lines(said) {
		if _, after, ok := strings.Cut(string(line), exploredLine); ok {
			text = strings.TrimSpace(after)
			t.Logf("%s: %s", name, text)
		}
	}
	if err != nil {
		last, _ := os.ReadFile(at) // there may be none
		t.Errorf("%s: %v, at %s\n%s", name, err, last, said)
	}
	return text
}

// exploredLine begins the line that tells what was explored.
const exploredLine = "explored: "

// TestScenario explores the scenario EXPLORE_SCENARIO in this process. With EXPLORE_CHOICES it
// tells the story of that one history.
func TestScenario(t *testing.T) {
	e := &exploration{
		t: t, scenario: scenarioOf(os.Getenv("EXPLORE_SCENARIO")), began: time.Now(),
		most: int(number(t, "EXPLORE_DEVIATIONS", 1)),
	}
	if text := os.Getenv("EXPLORE_CHOICES"); text != "" {
		e.tell(text)
		return
	}
	if name := os.Getenv("EXPLORE_AT"); name != "" {
		var err error
		if e.at, err = os.Create(name); err != nil {
			t.Fatal(err)
		}
		defer e.at.Close()
	}
	if found := e.explore(); found != nil {
		choices, err := json.Marshal(found.choices)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf(
			"%s\nthe story, where → is not the ordinary order:\n%s\nplay it again with "+
				"EXPLORE_SCENARIO='%s' EXPLORE_CHOICES='%s' go test -run TestScenario -v ./test/simulation",
			strings.Join(found.problems, "; "), found.story, e.scenario.name, choices,
		)
	}
	t.Log(exploredLine, e)
}

// tell plays one history, and tells its story.
func (e *exploration) tell(choices string) {
	var made []choice
	if err := json.Unmarshal([]byte(choices), &made); err != nil {
		e.t.Fatal(err)
	}
	h := e.play(made, true)
	e.t.Logf("%d points\n%s", len(h.points), h.story())
	if len(h.problems) > 0 || len(h.todo) > 0 {
		e.t.Errorf("%d of the deviations were not possible; %v", len(h.todo), h.problems)
	}
}

// exploration is that of one scenario.
type exploration struct {
	t        *testing.T
	scenario *scenario
	most     int // deviations
	began    time.Time
	at       *os.File // says which history is being played

	points int      // in the ordinary order
	runs   []int    // by deviations
	cut    struct { // histories whose continuations were left out
		same    int // the deviation made no difference
		vain    int // it waited for something that did not come
		other   int // another history than the one that they should have continued
		skipped int // points beyond the bound, and renewals after the second
	}
}

// explored is one history.
type explored struct {
	result
	*explorer
}

// explore plays histories with more and more deviations, so that it finds the shortest story. It
// returns the first problem, or nil.
func (e *exploration) explore() (found *finding) {
	for n := 0; n <= e.most && found == nil; n++ {
		e.runs = append(e.runs, 0)
		found = e.from(nil, n, 0)
	}
	return found
}

// finding is a history with a problem.
type finding struct {
	choices  []choice
	problems []string
	story    string
}

func (e *exploration) String() string {
	all := 0
	for _, n := range e.runs {
		all += n
	}
	return fmt.Sprintf(
		"%d points, %d histories (%v by deviations) in %v; cut after %d that made no difference, %d in "+
			"vain, %d that did not replay; %d points left out",
		e.points, all, e.runs, time.Since(e.began).Round(100*time.Millisecond), e.cut.same, e.cut.vain,
		e.cut.other, e.cut.skipped,
	)
}

// from plays a history, and those with more deviations after it, so many more.
func (e *exploration) from(made []choice, more int, before uint64) *finding {
	h := e.play(made, false)
	switch {
	case len(h.problems) > 0:
		return &finding{made, h.problems, e.play(made, true).story()}
	case len(h.todo) > 0:
		e.cut.other++
	case more == 0:
		e.runs[len(made)]++
	case len(made) > 0 && h.hash == before:
		e.cut.same++
	case h.vain:
		e.cut.vain++
	default:
		return e.deviate(made, more, h)
	}
	return nil
}

// deviate plays the histories that deviate from one at a later point.
func (e *exploration) deviate(made []choice, more int, h explored) *finding {
	first := 0
	if len(made) > 0 {
		first = made[len(made)-1].Point + 1
	} else {
		e.points = len(h.points)
	}
	e.cut.skipped += h.skipped
	for n := first; n < len(h.points); n++ {
		for _, o := range h.points[n].options {
			next := append(slices.Clone(made), choice{n, h.points[n].label, o})
			if found := e.from(next, more-1, h.hash); found != nil {
				return found
			}
		}
	}
	return nil
}

// play plays one history.
func (e *exploration) play(made []choice, tell bool) explored {
	if e.at != nil {
		_ = e.at.Truncate(0) // it is for a person
		_, _ = e.at.WriteAt([]byte(fmt.Sprintf("%+v", made)), 0)
	}
	x := &explorer{scenario: e.scenario, todo: made, renewals: map[lock.ID]int{}, tells: tell}
	begin := func() *world {
		x.begin(newWorldBy(unlucky{}, e.scenario.options(), nil))
		return x.w
	}
	return explored{playIn(e.t, begin, func(w *world) {
		w.play()
		if e.scenario.doctor != nil {
			e.scenario.doctor(x)
		}
	}), x}
}

// unlucky is a source by which nothing happens that has a chance of less than one.
type unlucky struct{}

func (unlucky) Uint64() uint64 { return 1<<64 - 1 }
