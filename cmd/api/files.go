package main

// keptFiles are the files that the process may open besides connections, most of them
// the store's. maxConnections is where a replica needs company: with each of them
// waiting, they take 1.5 GiB.
const (
	keptFiles      = 512
	maxConnections = 65_536
)

// mostConnections is how many connections a process may have that may have so many files
// open: an embedded store ends the process if it cannot open its own.
func mostConnections(files uint64) int {
	if files < 2*keptFiles {
		return int(files / 2)
	}
	return int(min(files-keptFiles, maxConnections))
}
