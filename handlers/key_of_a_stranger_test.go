package handlers_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fencepost/fencepost/handlers"
)

// TestKeyOfAStranger: the log of a refused token names the key that it says it is signed with.
func TestKeyOfAStranger(t *testing.T) {
	t.Parallel()
	c, _ := overRouter(t, &stub{}, func(*handlers.Config) {})
	token := sign("acme", jwt.SigningMethodHS256, "retired-2024", bytes.Repeat([]byte("x"), 32), nil)
	a := c.get("/locks", header("Authorization", bearer(token)...))
	if a.status != http.StatusUnauthorized {
		t.Fatalf("GET /locks = %d", a.status)
	}
	if line := shared.journal.request(t, a.header.Get("X-Request-Id")); line["kid"] != "retired-2024" {
		t.Errorf("the log has the key %v", line["kid"])
	}
}
