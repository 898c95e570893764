package side

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

//go:embed curator/Locks.java
var curatorSource []byte

// Curator is a Java process with clients of Curator's InterProcessMutex. It makes the load
// itself, as another process between it and its locks would cost it time.
type Curator struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartCurator connects n clients, which all want one lock or have locks of their own. The class
// path is that of Curator, dir is for its source.
func StartCurator(
	ctx context.Context, dir, classPath string, servers []string, n int, queue bool,
) (*Curator, error) {
	source := filepath.Join(dir, "Locks.java")
	if err := os.WriteFile(source, curatorSource, 0o600); err != nil {
		return nil, err
	}
	locks := "own"
	if queue {
		locks = "one"
	}
	c := &Curator{cmd: exec.CommandContext(
		ctx, "java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", classPath, source, strings.Join(servers, ","),
		ZooKeeperUser+":"+ZooKeeperPassword, strconv.Itoa(ttlSeconds*1000), strconv.Itoa(n), locks,
	)}
	log, err := os.Create(filepath.Join(dir, "curator.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has it open itself
	c.cmd.Stderr = log
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Curator: %w", err)
	}
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("start Curator: %q: %w", line, err), c.Close())
	}
	return c, nil
}

// PID returns the id of the process.
func (c *Curator) PID() int { return c.cmd.Process.Pid }

// Round makes one round of load.
func (c *Curator) Round(round int, warmup, lasts time.Duration) (*load.Result, error) {
	_, err := fmt.Fprintln(c.in, round, warmup.Milliseconds(), lasts.Milliseconds())
	if err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	r := &load.Result{Elapsed: lasts, Acquire: load.NewHistogram()}
	for word := range strings.FieldsSeq(line) {
		us, err := strconv.Atoi(word)
		if err != nil {
			return nil, errors.New("curator " + strings.TrimSpace(line))
		}
		r.Acquire.Record(time.Duration(us) * time.Microsecond)
		r.Cycles++
	}
	return r, nil
}

// Close ends the process and waits for it.
func (c *Curator) Close() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }
