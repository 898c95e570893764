package handlers_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/memory"
)

// BenchmarkCycle measures acquire, renew and release of a free lock, from the handler to the store
// in memory and back.
func BenchmarkCycle(b *testing.B) {
	server := memory.NewServer(memory.Config{})
	defer server.Close()
	backing := server.Connect(nil)
	defer backing.Close()
	s := service.New(service.Config{Store: backing, TokenKey: secret(), MinTTL: time.Second})
	defer s.Close()
	eventually(b, "the service is ready", func() bool { return s.Ready(b.Context()) == nil })
	h := shared.handlers(s)
	limits := quota.Standard()
	limits[quota.Requests], limits[quota.Renewals], limits[quota.Releases] = 1e6, 1e6, 1e6
	h.Quotas = quota.New(quota.Config{Defaults: limits, Records: shared.records})
	h.Logger = slog.New(slog.DiscardHandler)
	router, bearer := handlers.New(h), newTenant(b).bearer
	send := func(method, path, token string) []byte {
		r := httptest.NewRequest(method, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+bearer)
		if token != "" {
			r.Header.Set("Lock-Token", token)
		}
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code >= http.StatusMultipleChoices {
			b.Fatalf("%s %s = %d %s", method, path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		path := fmt.Sprintf("/locks/orders:%d", i)
		var held struct{ Token string }
		if err := json.NewDecoder(
			strings.NewReader(string(send("POST", path, ""))),
		).Decode(&held); err != nil {
			b.Fatal(err)
		}
		send("PUT", path+"/renew", held.Token)
		send("DELETE", path, held.Token)
	}
}
