// Package http tests the guard of HTTP services, with its store in SQLite.
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
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/fencepost/fencepost/client/fencehttp"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
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

// TestStoreReturnsTheGreatest: the guard accepts a fence if and only if raise.sql returns it.
func TestStoreReturnsTheGreatest(t *testing.T) {
	store := newStore(t)
	for _, step := range []struct{ raise, want uint64 }{{8, 8}, {8, 8}, {9, 9}, {8, 9}, {10, 10}} {
		got, err := store.Raise(t.Context(), "account:7", step.raise)
		if err != nil || got != step.want {
			t.Errorf("%d gives %d, want %d: %v", step.raise, got, step.want, err)
		}
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

// store is raise.sql.
type store struct {
	db    *sql.DB
	raise string
}

func newStore(t *testing.T) store {
	t.Helper()
	text, err := os.ReadFile("raise.sql")
	if err != nil {
		t.Fatal(err)
	}
	schema, raise, _ := strings.Cut(string(text), "-- name: raise")
	path := filepath.Join(t.TempDir(), "fences.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return store{db, raise}
}

func (s store) Raise(ctx context.Context, resource string, fence uint64) (known uint64, err error) {
	err = s.db.QueryRowContext(ctx, s.raise, resource, fence).Scan(&known)
	return known, err
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
