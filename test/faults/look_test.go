package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// inFlight is how many requests a replica is answering.
func (s *stand) inFlight(replica int) (n int) {
	s.t.Helper()
	for line := range bytes.Lines(s.get(s.replicas[replica].URL() + "/metrics")) {
		if _, err := fmt.Sscanf(string(line), "fencepost_http_requests_in_flight %d", &n); err == nil {
			return n
		}
	}
	s.t.Fatalf("replica %d does not tell how many requests are in flight", replica)
	return 0
}

// countGoroutines asks a replica's profiler.
func (s *stand) countGoroutines(replica int) (n int) {
	s.t.Helper()
	body := s.get("http://" + s.profiler(replica) + "/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(string(body), "goroutine profile: total %d", &n); err != nil {
		s.t.Fatalf("goroutines of replica %d: %v in %.100s", replica, err, body)
	}
	return n
}

// profiler is where the newest process of a replica serves it, by its log.
func (s *stand) profiler(replica int) (address string) {
	s.t.Helper()
	log, err := os.ReadFile(s.replicas[replica].Log())
	s.must(err)
	for line := range bytes.Lines(log) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "serving the profiler" {
			address = entry.Address
		}
	}
	return address
}

// get reads what operators look at.
func (s *stand) get(url string) []byte {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return body
}
