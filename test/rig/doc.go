// Package rig starts the real things that outside tests and benchmarks need,
// as operating system processes: members of an etcd cluster, replicas of the
// API server, and TCP proxies that lose, delay and cut connections on purpose.
//
// Everything listens on loopback, keeps its data below a folder given by the
// caller, and is stopped by its process id: by Close, or by the kernel when the
// calling process dies (on Linux). The package does not know testing.T, so that
// benchmarks and demos can use it too. It needs a Unix.
//
// A cluster and two replicas of the server on it:
//
//	etcdBinary, err := rig.BuildEtcd(ctx)
//	apiBinary, err := rig.BuildAPI(ctx, dir)
//	etcd, err := rig.StartEtcd(ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: etcdBinary})
//	defer etcd.Close()
//	a, err := rig.StartReplica(ctx, rig.ReplicaConfig{
//		Binary: apiBinary, Store: etcd.Store(), DataDir: filepath.Join(dir, "a"), Secret: secret,
//	})
//	defer a.Close()
package rig
