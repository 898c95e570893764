package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// local lets a sender go to receivers of a test, and nowhere else inside.
func local(t testing.TB) *webhook.Policy {
	return policy(t, webhook.Settings{Allow: "127.0.0.1/32", AllowHTTP: true, Ports: "*"})
}

// newSender returns one with a generous timeout: no test but those of timeouts
// depends on how fast the machine is.
func newSender(t testing.TB, change func(*webhook.SenderConfig)) *webhook.Sender {
	c := webhook.SenderConfig{Policy: local(t), Timeout: time.Minute}
	if change != nil {
		change(&c)
	}
	return webhook.NewSender(c)
}

// raw is a receiver that does with each connection what it likes, and counts them.
type raw struct {
	url         string
	connections atomic.Int64
}

// newRaw starts a receiver. A connection is closed when serve returns; what serve waits
// for has to end when the connection does.
func newRaw(t testing.TB, address string, serve func(net.Conn)) *raw {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{url: "http://" + listener.Addr().String()}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.connections.Add(1)
			open.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		open.Wait()
	})
	return r
}

// readRequest reads what a delivery sends, to the end of its body.
func readRequest(conn net.Conn) {
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

// answering is a receiver that reads the request and writes the text.
func answering(text string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, text)
	}
}

// hang waits until the other end has closed the connection.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// flood writes the text again and again, until the sender stops reading. It returns how
// many bytes were written.
func flood(conn net.Conn, text string) int64 {
	var written int64
	for {
		n, err := io.WriteString(conn, text)
		written += int64(n)
		if err != nil {
			return written
		}
	}
}

func newTLS(
	t testing.TB, change func(*httptest.Server),
) (url string, roots *x509.CertPool, certificate tls.Certificate) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = quiet()
	if change != nil {
		change(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, roots, s.TLS.Certificates[0]
}

func send(t testing.TB, s *webhook.Sender, url string) webhook.Result {
	t.Helper()
	return s.Send(
		t.Context(), target(url),
		webhook.Message{ID: "1042-0", Payload: []byte(`{"type":"lock.acquired"}`)},
	)
}

func target(url string) webhook.Target {
	return webhook.Target{URL: url, Secrets: []webhook.Secret{must(webhook.ParseSecret(secretText))}}
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// nameServer answers questions for IPv4 addresses over UDP, on loopback.
type nameServer struct {
	answer func(question int) (addresses []net.IP, code byte) // nil is no answer at all
	asked  atomic.Int64
	conn   net.PacketConn
}

// Codes of a name server.
const (
	nameServerFailed = 2
	nameNotFound     = 3
)

func newNameServer(t testing.TB, answer func(question int) ([]net.IP, byte)) dialer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{answer: answer, conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}
}

func (n *nameServer) serve() {
	packet := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		if reply := n.reply(packet[:size]); reply != nil {
			_, _ = n.conn.WriteTo(reply, from)
		}
	}
}

// reply is a response of RFC 1035 to a packet with one question.
func (n *nameServer) reply(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, type and class
	if end > len(query) {
		return nil
	}
	var addresses []net.IP
	var code byte
	if isA := query[end-3] == 1; isA {
		addresses, code = n.answer(int(n.asked.Add(1)))
		if addresses == nil && code == 0 {
			return nil
		}
	} else { // IPv6: no address, for the same reason
		_, code = n.answer(1)
	}
	reply := append(
		[]byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0},
		query[12:end]...,
	)
	for _, a := range addresses {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, a.To4()...)
	}
	return reply
}
