package zookeeper_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestGrowth has many entries, in many locks and in one: no list of children
// comes near what a server or a client of another kind would refuse, a replica
// that starts late sees everything, one watch is enough, and nothing is left
// over at the end, the records of the log included.
func TestGrowth(t *testing.T) {
	each := 4_000
	if os.Getenv("FAULTS") == "full" {
		each = 50_000
	}
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	follow(t, s)
	start := time.Now()
	var mu sync.Mutex
	var placed []*lock.Entry
	parallel(64, 2*each, func(i int) {
		e := draft("one")
		if e.ID = lock.ID(fmt.Sprintf("ENTRY%020d", i)); i%2 == 0 {
			e.Claims[0].Name = fmt.Sprint("many-", i)
		}
		got, _, err := s.Enqueue(t.Context(), e)
		if err != nil {
			t.Errorf("Enqueue: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		placed = append(placed, got)
	})
	t.Logf("%d entries written in %v", len(placed), time.Since(start))
	client := hand(t, z)
	names, bytes := longest(t, client, "/fencepost/v1")
	t.Logf("the longest list of children: %d names, %d bytes", names, bytes)
	if bytes > 1<<19 {
		t.Errorf("a list of children has %d bytes, the server's limit is 1 MiB", bytes)
	}
	start = time.Now()
	late := follow(t, open(t, zookeeper.Config{Servers: z.Endpoints()}))
	t.Logf("a replica that starts late has its view after %v", time.Since(start))
	late.mu.Lock()
	if n, _ := late.table.Len(); n != 2*each {
		t.Errorf("the late replica sees %d entries, want %d", n, 2*each)
	}
	late.mu.Unlock()
	start = time.Now()
	queue, _, err := s.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "one"})
	t.Logf("a queue of %d is read in %v: %v", len(queue), time.Since(start), err)
	start = time.Now()
	parallel(64, len(placed), func(i int) {
		if err := s.Remove(t.Context(), placed[i], lock.Released); err != nil {
			t.Errorf("Remove: %v", err)
		}
	})
	t.Logf("removed in %v", time.Since(start))
	folded(t, s, client)
	within(t, 10*time.Second, "nothing is left over", func() bool {
		late.mu.Lock()
		defer late.mu.Unlock()
		n, _ := late.table.Len()
		return n == 0
	})
}

func parallel(workers, n int, work func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range workers {
		all.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// longest returns the longest list of children below path, as ZooKeeper sends it.
func longest(t *testing.T, c *zk.Conn, path string) (names, bytes int) {
	t.Helper()
	all, _, err := c.Children(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		bytes += 4 + len(name)
	}
	names = len(all)
	if names > 2000 {
		return names, bytes // of records or entries, which have no list below them
	}
	for _, name := range all {
		if n, b := longest(t, c, path+"/"+name); b > bytes {
			names, bytes = n, b
		}
	}
	return names, bytes
}
