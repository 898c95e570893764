package zookeeper_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestRotate begins another log repeatedly while two replicas work, as happens long before the
// names of records overflow. No client notices: numbers grow, both feeds follow, nothing is left
// over, and the reasons of all ends are kept.
func TestRotate(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	stores := []*zookeeper.Store{
		open(t, zookeeper.Config{Servers: z.Endpoints()}),
		open(t, zookeeper.Config{Servers: z.Endpoints()}),
	}
	mirrors := []*mirror{follow(t, stores[0]), follow(t, stores[1])}
	working, rest := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := map[lock.ID]bool{}
	for worker := range 6 {
		workers.Go(func() {
			var newest uint64
			for i := 0; working.Err() == nil; i++ {
				e := draft(fmt.Sprint("lock-", worker))
				e.ID = lock.ID(fmt.Sprintf("W%dC%d", worker, i))
				s := stores[(worker+i)%2]
				placed, _, err := s.Enqueue(t.Context(), e)
				if err == nil {
					err = s.Remove(t.Context(), placed, lock.Released)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if placed.Number <= newest {
					t.Errorf("lock-%d: number %d after %d", worker, placed.Number, newest)
				}
				newest = placed.Number
				mu.Lock()
				done[e.ID] = true
				mu.Unlock()
			}
		})
	}
	for i := range 5 {
		within(t, 20*time.Second, "work goes on", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(done) > (i+1)*150
		})
		if err := stores[i%2].Rotate(t.Context()); err != nil {
			t.Errorf("Rotate: %v", err)
		}
	}
	rest()
	workers.Wait()
	newest, err := stores[0].Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mirrors {
		within(t, 20*time.Second, "the feed has everything", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			n, _ := m.table.Len()
			return m.current && m.number >= newest && n == 0
		})
	}
	knows(t, z, done)
	client := hand(t, z)
	// On a slow machine the upkeep has retired the first ones already.
	if logs := logsOf(t, client); len(logs) > 6 || !slices.Contains(logs, "0000000005") {
		t.Errorf("the logs are %v, want the sixth and at most all before it", logs)
	}
	var retiring sync.WaitGroup
	for _, s := range stores {
		retiring.Go(func() {
			within(
				t, 20*time.Second, "old logs are retired",
				func() bool { return s.Forget(t.Context(), 0) == nil && len(logsOf(t, client)) == 1 },
			)
		})
	}
	retiring.Wait()
	knows(t, z, done)
	t.Logf("%d cycles over 6 logs", len(done))
}

func logsOf(t *testing.T, client *zk.Conn) []string {
	t.Helper()
	logs, _, err := client.Children("/fencepost/v1/logs")
	if err != nil {
		t.Error(err)
	}
	return logs
}

// knows checks that a replica that starts late knows how all of them ended.
func knows(t *testing.T, z *rig.ZooKeeper, all map[lock.ID]bool) {
	t.Helper()
	late := &ends{reasons: map[lock.ID]lock.Reason{}}
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { s.Watch(ctx, late) })
	within(t, 20*time.Second, "a late replica knows all ends", func() bool { return late.know(all) })
}

// ends keeps the reasons of a first view.
type ends struct {
	mu      sync.Mutex
	reasons map[lock.ID]lock.Reason
}

func (e *ends) Recall(ended []store.Ended, _ bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range ended {
		e.reasons[end.ID] = end.Reason
	}
}

func (e *ends) Reset(store.Snapshot)         {}
func (e *ends) Apply(uint64, []store.Change) {}
func (e *ends) Lost(error)                   {}

func (e *ends) know(all map[lock.ID]bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range maps.Keys(all) {
		if e.reasons[id] != lock.Released {
			return false
		}
	}
	return true
}

// TestWaitersLeaveNoWatches has many wait and give up. One watch for each replica
// is all there ever is.
func TestWaitersLeaveNoWatches(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	enqueue(t, s, draft("a"))
	parallel(32, 500, func(i int) {
		e := draft("a")
		e.ID = lock.ID(fmt.Sprint("WAITER", i))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		placed, _, err := s.Enqueue(ctx, e)
		cancel()
		if err == nil {
			err = s.Remove(t.Context(), placed, lock.Withdrawn)
		}
		if err != nil {
			t.Error(err)
		}
	})
	within(t, time.Minute, "one watch is armed", func() bool { return watches(t, z) == "1" })
}

// watches asks the server how many there are.
func watches(t *testing.T, z *rig.ZooKeeper) string {
	t.Helper()
	conn, err := net.Dial("tcp", z.Server(0).Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("wchs")); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, total, _ := strings.Cut(string(answer), "Total watches:")
	return strings.TrimSpace(total)
}

// TestServerMoves has a server's name lead to another address. A client that
// looked it up once would never find the server again.
func TestServerMoves(t *testing.T) {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	_, port, err := net.SplitHostPort(z.Server(0).Address())
	if err != nil {
		t.Fatal(err)
	}
	names := startNames(t, net.IPv4(127, 0, 0, 2))
	old := startRelay(t, "127.0.0.2:"+port, z.Server(0).Address())
	s := open(t, zookeeper.Config{Servers: []string{"zookeeper.test:" + port}})
	e := enqueue(t, s, draft("a"))
	if old.served() == 0 {
		t.Fatal("the first address was not used")
	}
	old.close()
	names.set(net.IPv4(127, 0, 0, 1))
	within(
		t, 10*time.Second, "the store finds the new address",
		func() bool { return s.Renew(t.Context(), e) == nil },
	)
}

// names answers every question for an address with the same one.
type names struct {
	mu sync.Mutex
	ip [4]byte
}

func (n *names) set(ip net.IP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ip = [4]byte(ip.To4())
}

// startNames makes this process look up names at a server of its own.
func startNames(t *testing.T, ip net.IP) *names {
	t.Helper()
	n := &names{}
	n.set(ip)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
		},
	}
	var serving sync.WaitGroup
	serving.Go(func() { n.serve(conn) })
	t.Cleanup(func() {
		_ = conn.Close() // ends serve
		serving.Wait()
		net.DefaultResolver = was
	})
	return n
}

func (n *names) serve(conn net.PacketConn) {
	packet := make([]byte, 1500)
	for {
		length, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(packet[:length]) != nil || len(question.Questions) != 1 {
			continue
		}
		if answer, err := n.answer(question); err == nil {
			_, _ = conn.WriteTo(answer, from) // who hears nothing asks again
		}
	}
}

func (n *names) answer(question dnsmessage.Message) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := question.Questions[0]
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: question.ID, Response: true, RecursionAvailable: true},
		Questions: question.Questions,
	}
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{
			{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: n.ip},
			},
		}
	}
	return m.Pack()
}

// relay passes connections on from another address.
type relay struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func startRelay(t *testing.T, at, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: to}
	r.work.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, in, out)
		r.mu.Unlock()
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			r.work.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // ends with either
				_, _ = way[0].Close(), way[1].Close()
			})
		}
	}
}

func (r *relay) served() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) / 2
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range slices.Clone(r.conns) {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}
