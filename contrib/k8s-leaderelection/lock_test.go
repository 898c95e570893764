package leaderelection_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	fencepost "github.com/fencepost/fencepost/contrib/k8s-leaderelection"
)

const within = 20 * time.Second

func server(t *testing.T) (url, token string) {
	t.Helper()
	// It stops the server when cat ends; the context of the test would kill it before.
	cmd := exec.Command("../../clients/with-server", "sh", "-c",
		`echo "$FENCEPOST_URL $FENCEPOST_TOKEN"; cat`)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, token, _ = strings.Cut(strings.TrimSpace(line), " ")
	return url, token
}

func connect(t *testing.T, url, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URLs: []string{url}, Token: client.Bearer(token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// candidate runs the elector with a lock.
type candidate struct {
	*fencepost.Lock
	client *client.Client
	leads  chan uint64 // the fence
	stops  chan string
	resign context.CancelFunc
}

func campaign(t *testing.T, c *client.Client, identity string) *candidate {
	t.Helper()
	x := &candidate{
		Lock: fencepost.New(c, "controller", identity), client: c,
		leads: make(chan uint64, 1), stops: make(chan string, 1),
	}
	var ctx context.Context
	ctx, x.resign = context.WithCancel(t.Context())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: x, LeaseDuration: 2 * time.Second, RenewDeadline: time.Second,
		RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { x.leads <- x.Fence() },
			OnStoppedLeading: func() { x.stops <- identity },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	t.Cleanup(x.resign)
	return x
}

func await[T any](t *testing.T, what string, from chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(within):
		t.Fatalf("%s: it does not happen", what)
	}
	return value
}

// TestElectorHandsOver: of two candidates one leads. When it resigns, or when its client is gone,
// the other leads with a greater fence.
func TestElectorHandsOver(t *testing.T) {
	url, token := server(t)
	for _, resigns := range []bool{true, false} {
		a := campaign(t, connect(t, url, token), "a")
		first := await(t, "a leads", a.leads)
		b := campaign(t, connect(t, url, token), "b")
		held(t, b)
		if resigns {
			a.resign()
		} else {
			_ = a.client.Close() // renews no more
		}
		await(t, "a stops", a.stops)
		if second := await(t, "b leads", b.leads); second <= first {
			t.Errorf("the fence %d comes after %d", second, first)
		}
		b.resign()
		await(t, "b stops", b.stops)
	}
}

// held checks that a candidate sees the leader, does not lead itself, and still does not after
// some more than a lease.
func held(t *testing.T, b *candidate) {
	t.Helper()
	record, _, err := b.Get(t.Context())
	if err != nil || record.HolderIdentity != "a" {
		t.Errorf("b sees %+v, %v", record, err)
	}
	select {
	case <-b.leads:
		t.Error("both lead")
	case <-time.After(5 * time.Second):
	}
}

// TestLostTermEnds: a candidate that lost the lock does not take it again within the same term.
func TestLostTermEnds(t *testing.T) {
	url, token := server(t)
	a := campaign(t, connect(t, url, token), "a")
	fence := await(t, "a leads", a.leads)
	revoke(t, url, token, fence)
	await(t, "a stops", a.stops)
}

// TestUpdateSeesARevocation: long before the client would renew the lock.
func TestUpdateSeesARevocation(t *testing.T) {
	url, token := server(t)
	lock := fencepost.New(connect(t, url, token), "controller", "a")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 60}
	if err := lock.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	revoke(t, url, token, lock.Fence())
	if err := lock.Update(t.Context(), record); client.CodeOf(err) != api.Lost {
		t.Errorf("an update after the revocation: %v", err)
	}
	if lock.Fence() != 0 {
		t.Error("the candidate still leads")
	}
}

// TestUpdateOutlastsAServer: a server that does not answer does not end the term before the lease.
func TestUpdateOutlastsAServer(t *testing.T) {
	url, token := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.New(client.Config{
		URLs: []string{url}, Token: client.TokenFunc(func(context.Context) (string, error) {
			return token, ctx.Err()
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lock := fencepost.New(c, "controller", "a")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 2}
	if err := lock.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	cancel() // no request reaches the server any more
	if err := lock.Update(t.Context(), record); client.CodeOf(err) == api.Lost || lock.Fence() == 0 {
		t.Errorf("the term ends: %v", err)
	}
}

// revoke revokes the lock as an operator does.
func revoke(t *testing.T, url, token string, fence uint64) {
	t.Helper()
	var lock struct{ Holders []struct{ ID string } }
	text := ask(t, http.MethodGet, url+"/admin/locks/demo/controller", token, "")
	if err := json.Unmarshal(text, &lock); err != nil || len(lock.Holders) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	path := url + "/admin/locks/demo/controller/entries/" + lock.Holders[0].ID + "/revoke"
	ask(t, http.MethodPost, path, token, fmt.Sprintf(`{"fence":%d,"reason":"for a test"}`, fence))
}

func ask(t *testing.T, method, url, token, body string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%d, %v: %s", response.StatusCode, err, text)
	}
	return text
}
