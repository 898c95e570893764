package main

const (
	// keptFiles are the files that the process may open besides connections, most of them the store's.
	keptFiles = 512

	// maxConnections is where a replica needs company: with each of them waiting, they take 3.4 GiB.
	maxConnections = 65_536

	// perConnection is what a connection takes with a request that waits over it, in bytes. An
	// unfinished request may take more, which the handlers bound for all connections together.
	perConnection = 54 << 10
)

// mostConnections is how many connections a process may have that may have so many files open, and
// so many bytes of memory: half of the memory, and no file of the store's. An embedded store ends
// the process if it cannot open its own files.
func mostConnections(files uint64, memory int64) int {
	free := files - keptFiles
	if files < 2*keptFiles {
		free = files / 2
	}
	return int(min(free, uint64(memory)/2/perConnection, maxConnections))
}
