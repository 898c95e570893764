package kittest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/test/rig"
)

const tenant = "acme"

// Fencepost is a running server, with a client.
type Fencepost struct {
	URL, Token string
	Client     *client.Client
}

// StartFencepost starts a server with a store of its own. FENCEKIT_API is a server that is built
// already.
func StartFencepost(t *testing.T) *Fencepost {
	t.Helper()
	dir := t.TempDir()
	binary := os.Getenv("FENCEKIT_API")
	if binary == "" {
		var err error
		if binary, err = rig.BuildAPI(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	server, err := rig.StartReplica(t.Context(), rig.ReplicaConfig{
		Binary: binary, DataDir: filepath.Join(dir, "data"),
		Secret: "fencekit: thirty-two bytes or more, used by no other",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	f := &Fencepost{URL: server.URL()}
	f.Token, err = server.Token(tenant, "locks:read locks:write admin", "fencekit")
	if err != nil {
		t.Fatal(err)
	}
	if f.Client, err = connect(f.URL, f.Token); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Client.Close() })
	return f
}

// isReported fails unless operators see the stale write with the lock. The server writes reports
// within a second.
func (f *Fencepost) isReported(t *testing.T, lock string, presented, known uint64) {
	t.Helper()
	var seen []api.ReportedStaleWrite
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if seen = f.staleWrites(t, lock); len(seen) > 0 {
			break
		}
	}
	if len(seen) != 1 || seen[0].FencePresented != presented || seen[0].FenceKnown != known {
		t.Errorf("operators see %+v; want the fences %d and %d", seen, presented, known)
	}
}

func (f *Fencepost) staleWrites(t *testing.T, lock string) []api.ReportedStaleWrite {
	t.Helper()
	path := f.URL + "/admin/locks/" + tenant + "/" + url.PathEscape(lock)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var page api.AdminLockView
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	return page.StaleWrites
}
