package webhook_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// TestNames: what a name leads to is decided when the connection is made.
func TestNames(t *testing.T) {
	good := newRaw(t, "127.0.0.1:0", answering("HTTP/1.1 204 No Content\r\n\r\n"))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(good.url, "http://"))
	inside := newRaw(t, "127.0.0.2:"+port, answering("HTTP/1.1 200 OK\r\n\r\n"))
	here, there := net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)
	url := "http://hook.tenant.example:" + port + "/"
	if err := local(t).CheckURL("url", url); err != nil {
		t.Fatal(err)
	}
	const rejected = "its host name leads to an address that this server does not send to"
	for name, test := range map[string]struct {
		answer func(question int) ([]net.IP, byte)
		want   []webhook.Result
	}{
		"changes": {
			func(question int) ([]net.IP, byte) {
				return []net.IP{[]net.IP{here, there, here}[question-1]}, 0
			},
			[]webhook.Result{
				{Outcome: webhook.Delivered, Status: 204},
				{Outcome: webhook.Rejected, Err: rejected},
				{Outcome: webhook.Delivered, Status: 204},
			},
		},
		"two addresses": {
			func(int) ([]net.IP, byte) { return []net.IP{there, here}, 0 },
			[]webhook.Result{{Outcome: webhook.Delivered, Status: 204}},
		},
		"many": {
			func(int) ([]net.IP, byte) {
				return []net.IP{there, net.IPv4(10, 0, 0, 1), net.IPv4(169, 254, 169, 254), net.IPv4zero}, 0
			},
			[]webhook.Result{{Outcome: webhook.Rejected, Err: rejected}},
		},
		"no such name": {
			func(int) ([]net.IP, byte) { return nil, nameNotFound },
			[]webhook.Result{{Outcome: webhook.Failed, Err: "its host name does not resolve"}},
		},
	} {
		s := newSender(
			t, func(c *webhook.SenderConfig) { c.DialNameServer = newNameServer(t, test.answer) },
		)
		for i, want := range test.want {
			got := send(t, s, url)
			if got.Outcome != want.Outcome || got.Status != want.Status || got.Err != want.Err {
				t.Errorf("%s, attempt %d: %+v", name, i, got)
			}
			if got.Outcome == webhook.Rejected &&
				!strings.Contains(got.Cause.Error(), "127.0.0.2:"+port+" is not allowed: a loopback address") {
				t.Errorf("%s: the log is told %v", name, got.Cause)
			}
		}
	}
	silent := newSender(t, func(c *webhook.SenderConfig) {
		c.DialNameServer, c.Timeout = newNameServer(
			t, func(int) ([]net.IP, byte) { return nil, 0 },
		), time.Second
	})
	var together sync.WaitGroup
	for range 3 { // TestMain sees if a question is still open at the end
		together.Go(func() {
			if got := send(
				t, silent, url,
			); got.Outcome != webhook.Failed || got.Err != "no connection to it could be made within 1s" {
				t.Errorf("a silent name server: %+v", got)
			}
		})
	}
	together.Wait()
	broken := newSender(t, func(c *webhook.SenderConfig) {
		c.DialNameServer = newNameServer(t, func(int) ([]net.IP, byte) { return nil, nameServerFailed })
	})
	if got := send(t, broken, url); got.Outcome != webhook.Failed ||
		got.Err != "its host name could not be resolved: the name server did not answer as it should" {
		t.Errorf("a broken name server: %+v", got)
	}
	if n := inside.connections.Load(); n != 0 {
		t.Errorf("%d connections were made to an address that is not allowed", n)
	}
}
