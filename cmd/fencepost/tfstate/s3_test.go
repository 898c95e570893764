package tfstate_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencepost/fencepost/cmd/fencepost/tfstate"
)

// TestWriteBetweenReadAndWrite: a later holder that writes after an object was read, and before it
// is replaced, is not overwritten. A real store cannot be stopped there.
func TestWriteBetweenReadAndWrite(t *testing.T) {
	etag, content := `"old"`, "1\nold"
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("ETag", etag)
			_, _ = w.Write([]byte(content))
			etag, content = `"new"`, "3\nnew"
		case r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != etag:
			w.WriteHeader(http.StatusPreconditionFailed)
		default:
			content = "overwritten"
		}
	}))
	t.Cleanup(store.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": store.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id",
		"AWS_SECRET_ACCESS_KEY": "key",
	} {
		t.Setenv(name, value)
	}
	state, err := tfstate.Open("s3://bucket/key", "lock")
	if err != nil {
		t.Fatal(err)
	}
	err = state.Write(t.Context(), 2, []byte("late"))
	if stale := new(tfstate.StaleError); !errors.As(err, &stale) || stale.Known != 3 {
		t.Errorf("it returns %v", err)
	}
	if content != "3\nnew" {
		t.Errorf("the object has %q", content)
	}
}
