package simulation

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHistories plays histories of one seed after the other: SIMULATE_SEEDS of them,
// from SIMULATE_FROM on. Each processor has a process of its own, so that a history
// that panics or does not end is known by its seed.
func TestHistories(t *testing.T) {
	p := &play{t: t, next: number(t, "SIMULATE_FROM", 1), began: time.Now()}
	p.end = p.next + number(t, "SIMULATE_SEEDS", 2000)
	all := p.end - p.next
	p.atOnce = min(1000, max(1, all/uint64(4*runtime.GOMAXPROCS(0))))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for from, n := p.take(); n > 0; from, n = p.take() {
				p.shard(from, n)
			}
		})
	}
	workers.Wait()
	t.Logf(
		"%d of %d histories, %d steps, %v", p.played, all, p.steps,
		time.Since(p.began).Round(time.Second),
	)
}

const (
	failuresShown = 20
	progressEvery = 30 * time.Second
	historyWithin = 3 * time.Minute // of real time, on a busy machine
)

// play is what several processes play together.
type play struct {
	t      *testing.T
	began  time.Time
	atOnce uint64 // histories of one process

	mu            sync.Mutex
	next, end     uint64
	played, steps uint64
	failed        int
	shown         time.Time
}

// take returns what a process is to play next; nothing more after failures.
func (p *play) take() (from, n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed > 0 {
		return 0, 0
	}
	from, n = p.next, min(p.atOnce, p.end-p.next)
	p.next += n
	return from, n
}

// note takes what came of a history.
func (p *play) note(seed uint64, steps int, problems string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.played++
	p.steps += uint64(steps)
	if time.Since(p.began) > progressEvery && time.Since(p.shown) > progressEvery {
		p.shown = time.Now()
		p.t.Logf("%d histories after %v", p.played, time.Since(p.began).Round(time.Second))
	}
	if problems == "" || judgeAlone() && !strings.Contains(problems, refusedByModel) {
		return
	}
	if p.failed++; p.failed <= failuresShown {
		o := expand(seed)
		p.t.Errorf(
			"seed %d: %s\noptions: %v\nplay it again with SIMULATE_SEED=%d go test -run TestSeed -v ./test/simulation",
			seed,
			problems,
			o,
			seed,
		)
	}
}

// shard has a process of its own play histories.
func (p *play) shard(from, n uint64) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestShard$", "-test.timeout=0")
	cmd.Env = append(
		os.Environ(), fmt.Sprint("SIMULATE_SHARD_FROM=", from), fmt.Sprint("SIMULATE_SHARD=", n),
		"GOMAXPROCS=1", "GOGC=400", "GODEBUG=adaptivestackstart=1,asyncpreemptoff=1",
	)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.note(from, 0, err.Error())
		return
	}
	seed := p.follow(cmd, out, from)
	if err := cmd.Wait(); err != nil || seed != from+n {
		p.note(seed, 0, fmt.Sprintf("its process ended: %v\n%s", err, tail(said.String())))
	}
}

// follow reads what a process says of its histories, and returns the seed of the first
// that it says nothing of.
func (p *play) follow(cmd *exec.Cmd, out io.Reader, seed uint64) uint64 {
	watchdog := time.AfterFunc(historyWithin, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer watchdog.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var steps int
		text := lines.Text()
		if _, err := fmt.Sscanf(text, played, &seed, &steps); err != nil {
			continue
		}
		watchdog.Reset(historyWithin)
		_, problems, _ := strings.Cut(text, ": ")
		p.note(seed, steps, problems)
		seed++
	}
	return seed
}

func tail(text string) string { return text[max(0, len(text)-4<<10):] }

// played is what a process says of a history, followed by its problems.
const played = "played %d in %d steps: "

// TestShard plays the part of one process, and says what came of each history on the
// standard output. Each fiftieth is played twice, and has to be the same again.
func TestShard(t *testing.T) {
	from, n := number(t, "SIMULATE_SHARD_FROM", 1), number(t, "SIMULATE_SHARD", 3)
	for seed := from; seed < from+n; seed++ {
		r := simulate(t, expand(seed), nil)
		if seed%50 == 0 && !replays(t, seed, r.hash) {
			r.problems = append(r.problems, "played again it is another history")
		}
		fmt.Printf(
			played+"%s\n", seed, r.steps, strings.ReplaceAll(strings.Join(r.problems, "; "), "\n", " "),
		)
	}
}

// replays reports whether a seed gives the same history again. A process that the
// system stops in the middle of an instant may run two requests at one replica in the
// other order, which does not happen ten times.
func replays(t *testing.T, seed, hash uint64) bool {
	for range 10 {
		if simulate(t, expand(seed), nil).hash == hash {
			return true
		}
	}
	return false
}
