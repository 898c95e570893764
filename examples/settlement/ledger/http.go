package ledger

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// Handler serves the journal:
//
//	POST /batches/{lock}/open         Fence, Worker → 200 the settled invoices, one per line
//	POST /batches/{lock}/settlements  Fence, Worker, {"invoice","amount_cents"} → 201, or 200 when repeated
//	GET  /batches/{lock}              the settled invoices, not fenced: a hint, no basis for a write
//	GET  /journal, /refusals          everything, as JSON
//
// Fence and Worker are headers. A stale fence is 409 with the code stale_fence.
// The list of invoices is plain text so that a shell can read it.
func Handler(j *Journal, log *slog.Logger) http.Handler {
	s := server{journal: j, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /batches/{lock}/open", s.open)
	mux.HandleFunc("POST /batches/{lock}/settlements", s.settle)
	mux.HandleFunc("GET /batches/{lock}", s.settled)
	mux.HandleFunc("GET /journal", func(w http.ResponseWriter, r *http.Request) {
		entries, err := j.Entries(r.Context())
		s.list(w, entries, err)
	})
	mux.HandleFunc("GET /refusals", func(w http.ResponseWriter, r *http.Request) {
		refusals, err := j.Refusals(r.Context())
		s.list(w, refusals, err)
	})
	return mux
}

type server struct {
	journal *Journal
	log     *slog.Logger
}

// open writes the fence first and reads afterwards. The other way round, a write
// of the previous holder could still arrive between the reading and the first
// payment, and be paid again.
func (s server) open(w http.ResponseWriter, r *http.Request) {
	e, ok := s.entry(w, r)
	if !ok {
		return
	}
	if _, err := s.journal.Append(r.Context(), e); err != nil {
		s.fail(w, err)
		return
	}
	s.settled(w, r)
}

func (s server) settle(w http.ResponseWriter, r *http.Request) {
	e, ok := s.entry(w, r)
	if !ok {
		return
	}
	if err := decodePayment(http.MaxBytesReader(w, r.Body, 4096), &e); err != nil {
		problem(w, http.StatusBadRequest, "invalid_request", map[string]any{"detail": err.Error()})
		return
	}
	created, err := s.journal.Append(r.Context(), e)
	switch {
	case err != nil:
		s.fail(w, err)
	case created:
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

func decodePayment(body io.Reader, e *Entry) error {
	var payment struct {
		Invoice     string `json:"invoice"`
		AmountCents int64  `json:"amount_cents"`
	}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&payment); err != nil {
		return err
	}
	if payment.Invoice == "" || payment.AmountCents == 0 {
		return errors.New("invoice and amount_cents are required")
	}
	e.Invoice, e.AmountCents = payment.Invoice, payment.AmountCents
	return nil
}

// entry reads what every write names. A write without a fence is refused, never
// let through unchecked.
func (s server) entry(w http.ResponseWriter, r *http.Request) (Entry, bool) {
	e := Entry{Lock: r.PathValue("lock"), Worker: r.Header.Get("Worker")}
	fence, err := strconv.ParseInt(r.Header.Get("Fence"), 10, 64)
	if err != nil || fence <= 0 {
		problem(w, http.StatusBadRequest, "invalid_request",
			map[string]any{"detail": "the header Fence must be a positive integer"})
		return e, false
	}
	e.Fence = fence
	return e, true
}

func (s server) settled(w http.ResponseWriter, r *http.Request) {
	invoices, err := s.journal.Settled(r.Context(), r.PathValue("lock"))
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(invoices) > 0 {
		s.write(w, strings.Join(invoices, "\n")+"\n")
	}
}

func (s server) list(w http.ResponseWriter, list any, err error) {
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		s.log.Warn("answer not sent", "error", err)
	}
}

func (s server) fail(w http.ResponseWriter, err error) {
	var stale *StaleFenceError
	switch {
	case errors.As(err, &stale):
		s.log.Warn(
			"stale fence refused",
			"lock",
			stale.Lock,
			"fence",
			stale.Presented,
			"known",
			stale.Known,
		)
		problem(w, http.StatusConflict, "stale_fence",
			map[string]any{"detail": err.Error(), "fence": stale.Presented, "known": stale.Known})
	case errors.Is(err, ErrDifferent):
		problem(
			w,
			http.StatusUnprocessableEntity,
			"different_amount",
			map[string]any{"detail": err.Error()},
		)
	default:
		s.log.Error("request failed", "error", err)
		problem(w, http.StatusInternalServerError, "internal", nil)
	}
}

func (s server) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		s.log.Warn("answer not sent", "error", err)
	}
}

func problem(w http.ResponseWriter, status int, code string, more map[string]any) {
	body := map[string]any{
		"type":   "about:blank",
		"title":  http.StatusText(status),
		"status": status,
		"code":   code,
	}
	for key, value := range more {
		body[key] = value
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
