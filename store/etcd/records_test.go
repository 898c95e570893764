package etcd_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestRecordsEmbedded runs the suite of small records on a member inside the process.
func TestRecordsEmbedded(t *testing.T) {
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "the embedded member", conn.Close) })
	var cases atomic.Int32
	storetest.RunRecords(t, storetest.RecordHarness{
		NoCut:    "it is in the process and cannot be cut off",
		NoBackup: "its data belongs to this process alone",
		Open: func(t *testing.T) storetest.RecordClients {
			prefix := fmt.Sprintf("/records-%d/", cases.Add(1))
			return recordClients(open(t, conn, prefix), openClosable(t, conn, prefix))
		},
	})
}

// TestRecordsCluster runs it on three members that are processes.
func TestRecordsCluster(t *testing.T) {
	cluster := startCluster(t, 3)
	var cases atomic.Int32
	storetest.RunRecords(t, storetest.RecordHarness{
		OpenAlone: recordsAlone,
		Open: func(t *testing.T) storetest.RecordClients {
			prefix := fmt.Sprintf("/records-%d/", cases.Add(1))
			proxies := startProxies(t, cluster)
			clients := recordClients(
				dial(t, cluster.Endpoints(), prefix), openClosable(t, connect(t, proxies.addresses()), prefix),
			)
			clients.CutB = func(_ *testing.T, how storetest.Fault) func() { return proxies.cut(how) }
			return clients
		},
	})
}

// recordsAlone starts a member whose data can be put back.
func recordsAlone(t *testing.T) storetest.RecordClients {
	alone := openAlone(t)
	return storetest.RecordClients{
		A: alone.A.(*etcd.Store).Records(), B: alone.B.(*etcd.Store).Records(), Backup: alone.Backup,
	}
}

// closable is a store that may be closed before its test ends.
type closable struct {
	*etcd.Store
	close func()
}

func openClosable(t *testing.T, conn *etcd.Conn, prefix string) closable {
	t.Helper()
	s, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { closing(t, "a store", s.Close) })
	t.Cleanup(end)
	return closable{s, end}
}

func recordClients(a *etcd.Store, b closable) storetest.RecordClients {
	return storetest.RecordClients{A: a.Records(), B: b.Records(), CloseB: b.close}
}
