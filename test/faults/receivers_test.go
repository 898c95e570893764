package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

// receivers take webhooks, each at a path of its own, and fail now and then.
type receivers struct {
	*httptest.Server
	mu    sync.Mutex
	told  map[string]*told
	taken int     // messages
	odd   []error // what no sender may send

	calm int    // counts the periods without a kill; 0 in between
	from uint64 // a number that was there before this one
	last int    // of these periods
}

// told is what one receiver received.
type told struct {
	happened        map[lock.EventID]event
	acquired, ended map[uint64]lock.EventID // by the fence of the entry
	ids             map[string]int
	failed          map[string]bool
	missed          []gap
	first           []arrival // of each event
}

// arrival is the first time that an event comes, taken or not.
type arrival struct {
	lock string
	id   lock.EventID
	calm int   // the period without a kill in which it happened and came; 0 if in none
	made int64 // when the attempt was made, in seconds
}

// event is what the tests read of one.
type event struct {
	Type string
	Data struct {
		Number        uint64
		Lock          string
		After, Before string
		Reason        string
		Entry         struct {
			ID    string
			Fence uint64
		}
	}
}

func receive(t *testing.T, names ...string) *receivers {
	t.Helper()
	r := newReceivers(names...)
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Server.Close)
	return r
}

func newReceivers(names ...string) *receivers {
	r := &receivers{told: map[string]*told{}}
	for _, name := range names {
		r.told[name] = &told{
			happened: map[lock.EventID]event{}, acquired: map[uint64]lock.EventID{},
			ended: map[uint64]lock.EventID{}, ids: map[string]int{}, failed: map[string]bool{},
		}
	}
	return r
}

func (r *receivers) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil { // the sender was killed meanwhile
		http.Error(w, "cut", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one, id := r.told[strings.TrimPrefix(req.URL.Path, "/")], req.Header.Get("webhook-id")
	made, _ := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
	if err := one.come(id, made, body, r); err != nil {
		r.odd = append(r.odd, fmt.Errorf("%s: %s %s: %w", req.URL.Path, id, body, err))
		return
	}
	if !one.failed[id] && rand.N(20) == 0 { // not twice: the third attempt is minutes later
		one.failed[id] = true
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	r.taken++
	one.ids[id]++
	_ = one.take(id, body) // it was read before
}

// come notes that a message came, whether it is taken then or not.
func (one *told) come(id string, made int64, body []byte, r *receivers) error {
	e, at, _, err := read(id, body)
	if err != nil || e.Type == "events.missed" || one.ids[id] > 0 || one.failed[id] {
		return err
	}
	a := arrival{lock: e.Data.Lock, id: at, made: made}
	if at.Number > r.from {
		a.calm = r.calm
	}
	one.first = append(one.first, a)
	return nil
}

// take keeps what a message says.
func (one *told) take(id string, body []byte) error {
	e, at, missed, err := read(id, body)
	switch {
	case err != nil:
		return err
	case e.Type == "events.missed":
		one.missed = append(one.missed, missed)
		return nil
	case e.Type == "lock.acquired":
		one.acquired[e.Data.Entry.Fence] = at
	case e.Type != "lock.enqueued":
		one.ended[e.Data.Entry.Fence] = at
	}
	one.happened[at] = e
	return nil
}

// read reads a message: an event with its id, or what is missed.
func read(id string, body []byte) (e event, at lock.EventID, missed gap, err error) {
	if err = json.Unmarshal(body, &e); err != nil {
		return e, at, missed, err
	}
	if e.Type == "events.missed" {
		missed, err = gapOf(e.Data.After, e.Data.Before)
		missed.because = e.Data.Reason
		return e, at, missed, err
	}
	if at, err = lock.ParseEventID(id); err == nil && at.Number != e.Data.Number {
		err = fmt.Errorf("the id is of another number than %d", e.Data.Number)
	}
	return e, at, missed, err
}

// disturb says that a sender is about to be killed.
func (r *receivers) disturb() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calm = 0
}

// rest says that all that senders do goes on, and that what has a number above this one
// has happened since.
func (r *receivers) rest(above uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.calm, r.from = r.last, above
}

// messages is how many were taken until now.
func (r *receivers) messages() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}
