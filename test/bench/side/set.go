package side

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/fencepost/fencepost/test/bench/load"
)

// SetWorkers returns n clients that take sets of so many locks; the name that
// they are given begins those of the locks.
func (f Fencepost) SetWorkers(n, locks int) []load.Worker {
	workers := make([]load.Worker, n)
	for i := range workers {
		workers[i] = &setWorker{fencepostWorker: f.worker(i), locks: locks}
	}
	return workers
}

type setWorker struct {
	*fencepostWorker
	locks int
	text  bytes.Buffer
}

func (w *setWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.text.Reset()
	for i := range w.locks {
		fmt.Fprintf(&w.text, `,{"name":"%s:%02d"}`, name, i)
	}
	list := w.text.Bytes()[1:]
	body := fmt.Appendf(nil, `{"locks":[%s],%s`, list, w.body[1:])
	answer, err := w.http.expect(ctx, http.StatusCreated, http.MethodPost, "/locksets", w.acquire, body)
	if err != nil {
		return 0, err
	}
	var set struct {
		ID, Token string
		Locks     []struct{ Fence int64 }
	}
	if err := json.Unmarshal(answer, &set); err != nil || len(set.Locks) != w.locks {
		return 0, fmt.Errorf("read the set: %d locks, %w", len(set.Locks), err)
	}
	w.path = "/locksets/" + set.ID
	w.release["Lock-Token"][0] = set.Token
	return set.Locks[0].Fence, nil
}
