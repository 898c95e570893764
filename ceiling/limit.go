// Package ceiling keeps a server below the memory that it may use: it finds out how much that
// is, has the collector keep to most of it, and says when there is no room for new work.
package ceiling

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Limit is how much memory this process may use, in bytes: the lowest limit of the control
// groups that it is in, or else what the machine has. 0 is that nobody says. root is the
// machine's file system.
func Limit(root fs.FS) uint64 {
	lowest := machine(root)
	for _, text := range limits(root) {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64) // or max, which is none
		if err == nil && n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

// machine is the memory of the machine.
func machine(root fs.FS) uint64 {
	text, _ := fs.ReadFile(root, "proc/meminfo") // no Linux
	for line := range bytes.Lines(text) {
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == "MemTotal:" {
			n, _ := strconv.ParseUint(fields[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// limits are what the control groups say, from the process's own up to the first, in both
// versions of them. In a container its own is often the first.
func limits(root fs.FS) (all []string) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // no Linux
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if text, err := fs.ReadFile(root, path.Join(base, at, file)); err == nil {
				all = append(all, string(text))
			}
			if at == "/" {
				break
			}
		}
	}
	return all
}
