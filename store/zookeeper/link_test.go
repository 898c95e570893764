package zookeeper

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// mute is a server that begins a session with each client, and answers nothing.
func mute(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sessions sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); sessions.Wait() })
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { serveMutely(conn) })
		}
	})
	return listener.Addr().String()
}

func serveMutely(conn net.Conn) {
	defer conn.Close()
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
		return
	}
	begin := binary.BigEndian.AppendUint32(nil, 4+4+8+4+16)
	begin = binary.BigEndian.AppendUint32(begin, 0)      // version of the protocol
	begin = binary.BigEndian.AppendUint32(begin, 10_000) // timeout of the session, ms
	begin = binary.BigEndian.AppendUint64(begin, 1)      // session
	begin = binary.BigEndian.AppendUint32(begin, 16)
	begin = append(begin, make([]byte, 16)...) // its password
	if _, err := conn.Write(begin); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}

func muteLink(t *testing.T, address string) *link {
	t.Helper()
	l, err := openLink(t.Context(), address, access{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCloseDoesNotWaitForEver: a request that the library never ends is left behind; the
// connection is closed, so that there can be another one.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	l := muteLink(t, mute(t))
	never, began := make(chan struct{}), make(chan struct{})
	defer close(never)
	go func() {
		_, _ = do(t.Context(), l, func(*zk.Conn) (struct{}, error) {
			close(began)
			<-never
			return struct{}{}, nil
		})
	}()
	<-began
	l.fail(errSilent)
	within(t, "the connection is closed", l.close)
}

// TestCloseUnderLoad: connections that break while many requests are given to the library
// are closed. Where the library was closed first, one of some 300 never was.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	address := mute(t)
	var breaking sync.WaitGroup
	for range 64 {
		l := muteLink(t, address)
		breaking.Go(func() { breakUnderLoad(t, l) })
	}
	breaking.Wait()
}

func breakUnderLoad(t *testing.T, l *link) {
	t.Helper()
	var senders sync.WaitGroup
	for range inFlight {
		senders.Go(func() {
			for range 3 {
				_, _ = do(t.Context(), l, get("/x"))
			}
		})
	}
	l.fail(errSilent)
	within(t, "a connection is closed", l.close)
	if taken := len(l.slots); taken != cap(l.slots) {
		t.Errorf("%d requests never ended", cap(l.slots)-taken)
	}
	senders.Wait()
}

func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Errorf("not within 30 s: %s", what)
	}
}
