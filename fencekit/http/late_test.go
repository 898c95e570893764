// Package http tests the guard of HTTP services. Its store is raise of the kit for SQLite.
package http

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/fencepost/fencepost/client/fencehttp"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

func TestMain(m *testing.M) { kittest.Main(m, ways()) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "http-unchecked", Unchecked: true, Open: open},
		{Name: "http-guard", Open: open},
	}
}

// TestLateWrite: a service refuses a holder that was stopped past its lease, and serves the next.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	for _, way := range ways() {
		service := http.Handler(&accounts{balance: 100})
		if !way.Unchecked {
			service = fencehttp.Guard{Store: newStore(t)}.Wrap(service)
		}
		server := httptest.NewServer(service)
		t.Cleanup(server.Close)
		kittest.LateWrite(t, fencepost, way, server.URL+"/accounts/7")
	}
}

// accounts is a service that knows no fences.
type accounts struct{ balance int }

func (a *accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		if _, err := fmt.Fscan(r.Body, &a.balance); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	fmt.Fprint(w, a.balance)
}

// store raises fences in a database of its own.
type store struct {
	db    *sql.DB
	raise sqlkit.Statement
}

func newStore(t *testing.T) store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fences.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, text := range append(sqlkit.Accounts(), sqlkit.Text("../sqlite/schema.sql")) {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return store{db, sqlkit.Statements("?", "../sqlite/check.sql")["raise"]}
}

func (s store) Raise(ctx context.Context, resource string, fence uint64) (uint64, error) {
	known, err := s.raise.Number(ctx, s.db, sqlkit.Values{"lock": resource, "fence": int64(fence)})
	return uint64(known), err
}

// account is the client of the service. Its reads have the fence, too.
type account struct{ url string }

func open(_ context.Context, url string) (kittest.Account, error) { return account{url}, nil }

func (a account) Read(ctx context.Context, fence uint64) (int, error) {
	return a.send(ctx, http.MethodGet, fence, "")
}

func (a account) Write(ctx context.Context, fence uint64, balance int) error {
	_, err := a.send(ctx, http.MethodPut, fence, strconv.Itoa(balance))
	return err
}

func (a account) Close() error { return nil }

func (a account) send(ctx context.Context, method string, fence uint64, body string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set(fencehttp.Header, strconv.FormatUint(fence, 10))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode == http.StatusConflict {
		return 0, staleOf(text)
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return strconv.Atoi(string(text))
}

func staleOf(text []byte) error {
	var problem struct {
		Code  string
		Known uint64 `json:"fence_known"`
	}
	if err := json.Unmarshal(text, &problem); err != nil {
		return err
	}
	if problem.Code != "stale_fence" {
		return errors.New(problem.Code)
	}
	return &kittest.Stale{Known: problem.Known}
}
