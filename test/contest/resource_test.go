package contest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// resource keeps a number for each lock. Where it checks fences, it refuses those below the
// greatest that it has seen, in a write or a read.
type resource struct {
	url string

	mu      sync.Mutex
	values  map[string]*value
	workers map[string]*worker
	puts    []put
}

type value struct {
	checks bool

	mu      sync.Mutex
	number  int
	newest  uint64 // fence
	written int
	late    int // writes below the newest fence
	lost    int // writes of another number than this one plus one
}

// put is a write as it came in.
type put struct {
	worker *worker
	at     time.Time
	left   float64 // seconds to the end of the lease, as the client said
}

func newResource(t *testing.T, names []string) *resource {
	t.Helper()
	r := &resource{values: map[string]*value{}, workers: map[string]*worker{}}
	for _, name := range names {
		r.values[name] = &value{checks: strings.HasPrefix(name, "checked")}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{worker}/{name}", r.get)
	mux.HandleFunc("PUT /{worker}/{name}", r.put)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *resource) know(name string, w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[name] = w
}

func (r *resource) get(w http.ResponseWriter, req *http.Request) {
	v, fence := r.values[req.PathValue("name")], number(req, "fence")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.checks && fence < v.newest {
		w.WriteHeader(http.StatusConflict)
		return
	}
	v.newest = max(v.newest, fence)
	fmt.Fprint(w, v.number)
}

// put writes at once, or stops its worker first: to the resource that is as if the worker had been
// stopped between its last check and the write.
func (r *resource) put(w http.ResponseWriter, req *http.Request) {
	at, v := time.Now(), r.values[req.PathValue("name")]
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	to, err := strconv.Atoi(string(text))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	worker := r.workers[req.PathValue("worker")]
	r.mu.Unlock()
	left, _ := strconv.ParseFloat(req.URL.Query().Get("left"), 64)
	p := put{worker: worker, at: at, left: left}
	if rand.IntN(4) == 0 {
		worker.pause(longPause())
	}
	status := v.write(number(req, "fence"), to)
	r.mu.Lock()
	r.puts = append(r.puts, p)
	r.mu.Unlock()
	w.WriteHeader(status)
}

func (v *value) write(fence uint64, to int) (status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if fence < v.newest {
		if v.late++; v.checks {
			return http.StatusConflict
		}
	}
	if to != v.number+1 {
		v.lost++
	}
	v.number, v.newest, v.written = to, max(v.newest, fence), v.written+1
	return http.StatusNoContent
}

func number(req *http.Request, name string) uint64 {
	n, _ := strconv.ParseUint(req.URL.Query().Get(name), 10, 64)
	return n
}
