// Package side drives the servers that the benchmark compares: Fencepost, and
// the ways in which people take a lock from etcd today. Each side is a set of
// [load.Worker]s; every one that speaks HTTP does it with the same client.
package side
