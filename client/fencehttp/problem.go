package fencehttp

import (
	"encoding/json"
	"net/http"
)

// problem is an answer by RFC 9457. It has no type, so its title is that of the status.
type problem struct {
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Presented uint64 `json:"fence_presented,omitempty"`
	Known     uint64 `json:"fence_known,omitempty"`
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client has gone
}
