package rig_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
	"go.uber.org/goleak"
)

// echo answers each line with the line itself and remembers it.
type echo struct {
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	lines []string
	conns []net.Conn
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener}
	e.work.Go(e.accept)
	t.Cleanup(e.close)
	return e
}

func (e *echo) accept() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, conn)
		e.mu.Unlock()
		e.work.Go(func() { e.serve(conn) })
	}
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		e.mu.Lock()
		e.lines = append(e.lines, strings.TrimSpace(line))
		e.mu.Unlock()
		if _, err := io.WriteString(conn, line); err != nil {
			return
		}
	}
}

func (e *echo) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, " ")
}

func (e *echo) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.conns)
}

func (e *echo) close() {
	e.listener.Close()
	e.mu.Lock()
	for _, c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.work.Wait()
}

// setup starts an echo server behind a proxy and checks at the end that
// neither leaves a goroutine.
func setup(t *testing.T) (*echo, *rig.Proxy) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	e := startEcho(t)
	p, err := rig.StartProxy(e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, p
}

// peer is a client's connection with a deadline on everything.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *rig.Proxy) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{t, conn, bufio.NewReader(conn)}
}

func (c *peer) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Fatalf("send %q: %v", line, err)
	}
}

func (c *peer) receive(within time.Duration) (string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *peer) want(line string) {
	c.t.Helper()
	if got, err := c.receive(5 * time.Second); got != line || err != nil {
		c.t.Fatalf("receive = %q, %v, want %q", got, err, line)
	}
}

func (c *peer) wantReset(partial string) {
	c.t.Helper()
	got, err := c.receive(5 * time.Second)
	if !errors.Is(err, syscall.ECONNRESET) || got != partial {
		c.t.Fatalf("receive = %q, %v, want %q and a reset", got, err, partial)
	}
}

func (c *peer) wantSilence(during time.Duration) {
	c.t.Helper()
	if got, err := c.receive(during); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("receive = %q, %v, want nothing for %v", got, err, during)
	}
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !check(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestProxyForwards(t *testing.T) {
	e, p := setup(t)
	a, b := dial(t, p), dial(t, p)
	a.send("a1")
	b.send("b1")
	a.want("a1")
	b.want("b1")
	large := strings.Repeat("x", 1<<20)
	a.send(large)
	a.want(large)
	if got := p.Stats(); got.Connections != 2 || got.Resets != 0 || got.BytesToServer != got.BytesToClient {
		t.Errorf("Stats() = %+v, want 2 connections, no reset, as much back as forth", got)
	}
	if got := e.connections(); got != 2 {
		t.Errorf("server saw %d connections, want 2", got)
	}
}

func TestProxyPassesTheEndOfInput(t *testing.T) {
	_, p := setup(t)
	a := dial(t, p)
	a.send("last")
	if err := a.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a.want("last")
	if got, err := a.receive(5 * time.Second); !errors.Is(err, io.EOF) {
		t.Fatalf("receive = %q, %v, want the end of input", got, err)
	}
}

func TestProxyDropAnswers(t *testing.T) {
	e, p := setup(t)
	a := dial(t, p)
	a.send("before")
	a.want("before")
	p.DropAnswers(1)
	a.send("lost")
	a.wantReset("")
	if got := e.heard(); got != "before lost" {
		t.Errorf("server heard %q, want the lost request too", got)
	}
	if got := string(p.Dropped()); got != "lost\n" {
		t.Errorf("Dropped() = %q, want the answer that was lost", got)
	}
	b := dial(t, p)
	b.send("after")
	b.want("after")
	if got := p.Stats(); got.AnswersDropped != 1 || got.Resets != 1 {
		t.Errorf("Stats() = %+v, want 1 dropped answer", got)
	}
}

func TestProxyCutRequests(t *testing.T) {
	e, p := setup(t)
	p.CutRequests(1)
	a := dial(t, p)
	a.send("cut")
	a.wantReset("")
	b := dial(t, p)
	b.send("after")
	b.want("after")
	if got := e.heard(); got != "after" && got != "cut after" {
		t.Errorf("server heard %q, want both or the second alone", got)
	}
	if got := p.Stats(); got.RequestsCut != 1 || got.AnswersDropped != 0 {
		t.Errorf("Stats() = %+v, want 1 cut request", got)
	}
}

func TestProxyCutAfter(t *testing.T) {
	_, p := setup(t)
	p.CutAfter(8)
	a := dial(t, p)
	a.send("12345")
	a.want("12345")
	a.send("67890")
	a.wantReset("67")
	p.CutAfter(-1)
	b := dial(t, p)
	b.send("1234567890")
	b.want("1234567890")
}

func TestProxyCutAll(t *testing.T) {
	_, p := setup(t)
	a, b := dial(t, p), dial(t, p)
	for _, c := range []*peer{a, b} {
		c.send("x")
		c.want("x")
	}
	if got := p.CutAll(); got != 2 {
		t.Errorf("CutAll() = %d, want 2", got)
	}
	a.wantReset("")
	b.wantReset("")
	c := dial(t, p)
	c.send("new")
	c.want("new")
}

func TestProxyBlackhole(t *testing.T) {
	for _, test := range []struct {
		name   string
		hole   rig.Direction
		arrive bool // the request at the server, in spite of the hole
	}{
		{"to server", rig.ToServer, false},
		{"to client", rig.ToClient, true},
		{"both ways", rig.Both, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, p := setup(t)
			a := dial(t, p)
			a.send("before")
			a.want("before")
			p.Blackhole(test.hole)
			a.send("held")
			a.wantSilence(100 * time.Millisecond)
			if arrived := strings.Contains(e.heard(), "held"); arrived != test.arrive {
				t.Errorf("request at the server = %v, want %v", arrived, test.arrive)
			}
			p.Blackhole(0)
			a.want("held")
			if got := e.heard(); got != "before held" {
				t.Errorf("server heard %q, want each line once", got)
			}
		})
	}
}

func TestProxyBlackholeSome(t *testing.T) {
	_, p := setup(t)
	marks := func(sent []byte) bool { return strings.Contains(string(sent), "watch") }
	p.BlackholeSome(0, marks)
	a, b := dial(t, p), dial(t, p)
	for c, line := range map[*peer]string{a: "watch", b: "ask"} {
		c.send(line)
		c.want(line)
	}
	p.BlackholeSome(rig.ToClient, marks)
	b.send("more")
	b.want("more")
	a.send("held")
	a.wantSilence(100 * time.Millisecond)
	b.send("watch too")
	b.wantSilence(100 * time.Millisecond)
	p.BlackholeSome(0, marks)
	a.want("held")
	b.want("watch too")
}

func TestProxyBlackholeHidesConnectAndClose(t *testing.T) {
	e, p := setup(t)
	a := dial(t, p)
	a.send("x")
	a.want("x")
	p.Blackhole(rig.Both)
	b := dial(t, p)
	b.send("y")
	b.wantSilence(100 * time.Millisecond)
	if got := e.connections(); got != 1 {
		t.Errorf("server saw %d connections through the hole, want 1", got)
	}
	e.mu.Lock()
	e.conns[0].Close()
	e.mu.Unlock()
	a.wantSilence(100 * time.Millisecond)
	p.Blackhole(0)
	b.want("y")
	if got, err := a.receive(5 * time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("receive = %q, %v, want the server's close after the heal", got, err)
	}
}

func TestProxyDelay(t *testing.T) {
	_, p := setup(t)
	const by = 60 * time.Millisecond
	p.Delay(rig.Both, by)
	a := dial(t, p)
	start := time.Now()
	a.send("slow")
	a.want("slow")
	if took := time.Since(start); took < 2*by {
		t.Errorf("round trip took %v, want at least %v", took, 2*by)
	}
	p.Delay(rig.Both, 0)
	p.Delay(rig.ToClient, time.Hour)
	a.send("never")
	a.wantSilence(50 * time.Millisecond)
}

func TestProxyTellsWhenTheServerIsAway(t *testing.T) {
	e, p := setup(t)
	e.close()
	conn, err := net.Dial("tcp", p.Address())
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("dial and read = %v, want a reset", err)
	}
}
