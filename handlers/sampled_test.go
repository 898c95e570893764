package handlers_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/handlers"
)

// TestLogEvery: of requests that succeed one of so many has a line, which says so; each that
// is refused has one.
func TestLogEvery(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	config := shared.handlers(shared.main.service)
	config.Logger, config.LogEvery = slog.New(slog.NewJSONHandler(&lines, nil)), 4
	h := handlers.New(config)
	for range 20 {
		for _, path := range []string{"/healthz", "/nowhere"} {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, http.NoBody))
		}
	}
	got := map[[2]float64]int{}
	for decoder := json.NewDecoder(&lines); decoder.More(); {
		var line struct{ Status, Sampled float64 }
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		got[[2]float64{line.Status, line.Sampled}]++
	}
	if diff := cmp.Diff(map[[2]float64]int{{200, 4}: 5, {404, 0}: 20}, got); diff != "" {
		t.Errorf("lines by status and sampling (-want +got):\n%s", diff)
	}
}
