package simulation

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// world is one history while it happens. Everything but the replicas and the
// clients' calls is done by one goroutine.
type world struct {
	options
	rand    *rand.Rand
	began   time.Time
	inbox   inbox
	crew    crew // for the clients' calls
	agenda  agenda
	timer   *time.Timer
	taken   map[time.Duration]bool
	stuck   []*message // writes that arrive late
	joining []*message // writes that wait for others, to share a transaction
	healed  bool
	since   time.Duration // when it healed
	turned  time.Duration // by how much more than a minute each clocks were changed, in all
	over    bool

	numbered int  // how often the store's numbers came to mean something else
	restored int  // which of these was the last restore
	missing  bool // the store went back, and no operator has done anything about it yet

	server   *memory.Server
	list     replicaList
	replicas []*replica
	clients  []*client
	truth    *truth
	judge    *judge
	operator operator
	told     *told
	hooks    hooks
	posted   posted
	explorer *explorer // decides instead of rand, or nil
	calls    int       // that were begun
	open     []*call   // that were not answered yet

	hash     hash.Hash64
	line     []byte       // of the log, the last one
	trace    func(string) // of each step, if anybody wants it
	steps    int
	problems []string
	broken   []string // the formats of the problems: which check each is of
}

func newWorld(o options, trace func(string)) *world {
	return newWorldBy(rand.NewPCG(o.Seed, 2), o, trace)
}

func newWorldBy(source rand.Source, o options, trace func(string)) *world {
	w := &world{
		options: o, rand: rand.New(source), began: time.Now(),
		inbox: inbox{arrived: make(chan struct{}, 1)}, taken: map[time.Duration]bool{},
		timer: time.NewTimer(0), hash: fnv.New64a(), trace: trace,
	}
	w.truth, w.told, w.posted = newTruth(w), newTold(), newPosted()
	w.judge = newJudge(w)
	w.operator = operator{w: w}
	w.server = memory.NewServer(
		memory.Config{Number: 100, ExpiryRecord: o.ExpiryRecord, Observe: w.truth.steps.add},
	)
	for n := range o.Replicas {
		r := &replica{w: w, n: n}
		r.start()
		w.replicas = append(w.replicas, r)
	}
	for n := range o.Clients {
		w.clients = append(w.clients, newClient(w, n))
	}
	return w
}

// now is how long the history has been going on.
func (w *world) now() time.Duration { return time.Since(w.began) }

// run does one thing after the other until the time or until done.
func (w *world) run(until time.Duration, done func() bool) bool {
	for {
		synctest.Wait()
		w.truth.catchUp()
		for _, a := range w.inbox.take() {
			a.handle()
		}
		if done() {
			return true
		}
		next := until
		if len(w.agenda) > 0 {
			next = min(next, w.agenda[0].at)
		}
		if left := next - w.now(); left > 0 && !w.elapse(left) {
			continue // something arrived
		}
		if w.now() >= until {
			return false
		}
		e := heap.Pop(&w.agenda).(event)
		delete(w.taken, e.at)
		w.steps++
		w.truth.catchUp()
		e.do()
	}
}

// elapse lets time pass, and reports whether all of it did before anything arrived.
func (w *world) elapse(d time.Duration) bool {
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
		return true
	case <-w.inbox.arrived:
		return false
	}
}

// note adds a step to the log.
func (w *world) note(what string, details ...any) {
	line := binary.LittleEndian.AppendUint64(w.line[:0], uint64(w.now()))
	line = append(line, what...)
	for _, d := range details {
		line = append(w.written(line, d), 0)
	}
	w.line = line
	w.hash.Write(line)
	if w.trace != nil {
		w.trace(fmt.Sprintf("%12v %s %v", w.now(), what, details))
	}
	w.explorer.noted(what, details)
}

// written adds a detail to a line of the log. It is here because fmt took a tenth of
// the time.
func (w *world) written(line []byte, detail any) []byte {
	switch d := detail.(type) {
	case string:
		return append(line, d...)
	case lock.ID:
		return append(line, d...)
	case int:
		return binary.LittleEndian.AppendUint64(line, uint64(d))
	case uint64:
		return binary.LittleEndian.AppendUint64(line, d)
	case bool:
		return strconv.AppendBool(line, d)
	}
	panic(fmt.Sprintf("%T in the log", detail))
}

// problem notes that something is wrong with the history.
func (w *world) problem(format string, args ...any) {
	if w.judge.alone && !strings.HasPrefix(format, refusedByModel) {
		return
	}
	text := fmt.Sprintf("%v: ", w.now()) + fmt.Sprintf(format, args...)
	w.explorer.wrong(text)
	w.problems, w.broken = append(w.problems, text), append(w.broken, format)
	if w.trace != nil {
		w.trace("PROBLEM " + text)
	}
}

func (w *world) pick(n int) int { return w.rand.IntN(n) }

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least)))
}

// percent reports true so many times of a hundred.
func (w *world) percent(n int) bool { return w.rand.IntN(100) < n }
