package ceiling

import (
	"runtime"
	"testing"
	"testing/fstest"
	"time"
)

func files(all map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range all {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

// TestLimit: the lowest limit around the process counts.
func TestLimit(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:        1000 kB\nMemFree:         1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"Nobody":     {nil, 0},
		"Machine":    {map[string]string{"proc/meminfo": meminfo}, 1000 << 10},
		"Unlimited":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 1000 << 10},
		"Container":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "5000\n"}, 5000},
		"Slice":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "7000\n"}, 7000},
		"First":      {map[string]string{"proc/self/cgroup": "12:cpu:/x\n5:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "6000\n"}, 6000},
		"TooMuch":    {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9223372036854771712\n"}, 1000 << 10},
		"NoMeminfo":  {map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/x/memory.max": "8000\n"}, 8000},
		"NotALimit":  {map[string]string{"proc/self/cgroup": "nonsense\n0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
		"NotMeminfo": {map[string]string{"proc/meminfo": "MemTotal: x\n"}, 0},
	} {
		if got := Limit(files(c.files)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestGuard: full from three quarters on, with room again only some way below, and a
// collection is made if none shows that there is.
func TestGuard(t *testing.T) {
	t.Parallel()
	var bytes, collections uint64
	made := 0
	g := &Guard{limit: 1000, used: func() (uint64, uint64) { return bytes, collections }, collect: func() { made++ }}
	now := time.Unix(0, 0)
	for i, c := range []struct {
		bytes, collections uint64
		after              time.Duration
		full               bool
		made               int
	}{
		{749, 1, 0, false, 0},
		{750, 2, every, true, 0},
		{749, 3, every, true, 0},
		{700, 4, every, true, 0},
		{700, 4, collectAfter, true, 1},
		{699, 5, every, false, 1},
		{740, 5, 10 * collectAfter, false, 1},
		{900, 6, every, true, 1},
	} {
		bytes, collections, now = c.bytes, c.collections, now.Add(c.after)
		if g.look(now); g.Full() != c.full || made != c.made {
			t.Errorf("step %d: full %t, %d collections", i, g.Full(), made)
		}
	}
}

// TestUsed: what the runtime says is there under the names that are asked for.
func TestUsed(t *testing.T) {
	kept := make([]byte, 64<<20)
	for i := range kept {
		kept[i] = 1
	}
	g := NewGuard(0)
	g.collect()
	if bytes, collections := used(); bytes < 64<<20 || bytes > 10<<30 || collections == 0 {
		t.Errorf("%d bytes, %d collections", bytes, collections)
	}
	runtime.KeepAlive(kept)
}
