package row

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine describes where and on what a run was made.
type Machine struct {
	CPU      string
	Cores    int
	Kernel   string
	Go       string
	Load     string        // average of the last minute, before the run; empty if unknown
	Revision string        // of the checkout, with "+" when it was changed; empty if unknown
	Flush    time.Duration // median time to append 4 KiB to a file and flush it
	Date     time.Time
}

// Inspect measures the flush time in dir, where the servers will keep their
// data. A flush of a few microseconds means that dir is not on a disk, and that
// figures made there say nothing.
func Inspect(dir string) (Machine, error) {
	flush, err := flushTime(dir)
	if err != nil {
		return Machine{}, err
	}
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(),
		Kernel: strings.TrimSpace(readOr("/proc/sys/kernel/osrelease", runtime.GOOS)),
		Go:     runtime.Version(), Load: firstField(readOr("/proc/loadavg", "")), Revision: revision(),
		Flush: flush, Date: time.Now().UTC(),
	}, nil
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d × %s, kernel %s, %s; appending 4 KiB and flushing it takes %v",
		m.Date.Format(time.DateOnly), m.Cores, m.CPU, m.Kernel, m.Go, m.Flush.Round(time.Microsecond))
	if m.Load != "" {
		s += "; load average before the run " + m.Load
	}
	if m.Revision != "" {
		s += "; revision " + m.Revision
	}
	return s
}

func firstField(s string) string {
	field, _, _ := strings.Cut(s, " ")
	return field
}

func cpuModel() string {
	for line := range strings.Lines(readOr("/proc/cpuinfo", "")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func readOr(path, otherwise string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	return string(b)
}

// revision is empty outside a checkout, which is no error: the figures stand
// without it.
func revision() string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	rev := strings.TrimSpace(string(head))
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	if err == nil && len(bytes.TrimSpace(changed)) > 0 {
		rev += "+"
	}
	return rev
}

func flushTime(dir string) (_ time.Duration, err error) {
	f, err := os.CreateTemp(dir, "flush")
	if err != nil {
		return 0, fmt.Errorf("measure a flush: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var times []time.Duration
	for range 200 {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, fmt.Errorf("measure a flush: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure a flush: %w", err)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// tick is the unit of processor times in /proc: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// cpuTime returns the processor time that processes have used so far. It needs
// Linux; elsewhere, and for a process that is gone, it is 0.
func cpuTime(pids ...int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		stat := readOr(filepath.Join("/proc", strconv.Itoa(pid), "stat"), "")
		_, after, _ := strings.Cut(stat, ") ") // the name before may hold spaces
		if fields := strings.Fields(after); len(fields) > 12 {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			sum += time.Duration(user+system) * tick
		}
	}
	return sum
}

// busyTime returns the processor time that all processes, the kernel and other
// guests of the machine have used so far; 0 where that is not known.
func busyTime() time.Duration {
	line, _, _ := strings.Cut(readOr("/proc/stat", ""), "\n")
	var sum time.Duration
	for i, field := range strings.Fields(line) {
		const idle, waiting, guest = 4, 5, 9 // guests' time is in that of users already
		if i == 0 || i == idle || i == waiting || i >= guest {
			continue
		}
		ticks, _ := strconv.Atoi(field)
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// footprint is the memory of a process that is in RAM, in bytes.
type footprint struct {
	all       float64
	anonymous float64 // without pages of files, such as a mapped database and the binary
}

func measure(pid int) (f footprint, err error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return f, fmt.Errorf("read resident memory (needs Linux): %w", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			f.all = kib * 1024
		case "RssAnon":
			f.anonymous = kib * 1024
		}
	}
	if f.all == 0 || f.anonymous == 0 {
		return f, fmt.Errorf("no resident memory of process %d", pid)
	}
	return f, nil
}

// allowClients lets that many clients of one tenant be connected: to this process, which
// has them, and to servers, which keep a quarter of their connections for others.
func allowClients(n int) error { return allowOpenFiles(uint64(n+n/3) + spareFiles) }

// allowOpenFiles raises the limit of open files of this process and its children, as far as the
// system lets it. It fails if that is not enough.
func allowOpenFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if limit.Cur >= n {
		return nil
	}
	wanted := syscall.Rlimit{Cur: n, Max: max(n, limit.Max)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &wanted); err != nil {
		return fmt.Errorf("raise the limit of open files from %d to %d: %w", limit.Cur, n, err)
	}
	return nil
}
