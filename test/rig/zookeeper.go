package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ZooKeeperVersion is the release that the tests run. 3.9.4 is the first without
// the losses of data of the releases before it (ZOOKEEPER-4925, ZOOKEEPER-4394).
const ZooKeeperVersion = "3.9.5"

// ZooKeeperConfig says which ensemble to start.
type ZooKeeperConfig struct {
	// Servers is their number, 1 when zero.
	Servers int
	// Dir holds the servers' data and logs, in folders zookeeper-0, …
	Dir string
	// Java is the class path of the server, see FetchZooKeeper.
	Java string
	// TickTime is ZooKeeper's unit of time; 500 ms when zero. Sessions last at
	// least two of them, and an election begins after five without the leader.
	TickTime time.Duration
	// Secure has each server listen for TLS as well, on its SecureAddress. The
	// Properties must then name certificates.
	Secure bool
	// Optimized has the JVM compile what is hot with its second compiler too. That
	// pays under minutes of load; in the conformance suite it took a quarter of the
	// processor time.
	Optimized bool
	// Properties are added to each JVM's system properties, as name=value.
	Properties []string
}

// ZooKeeper is a running ensemble of ZooKeeper processes with fsync on.
type ZooKeeper struct {
	servers []*ZooKeeperServer
	ports   []*port
}

// FetchZooKeeper resolves the server and what it needs from Maven Central into
// dir and returns the class path. What is there already is not fetched again.
func FetchZooKeeper(ctx context.Context, dir string) (string, error) {
	return fetchJava(ctx, filepath.Join(dir, "zookeeper-"+ZooKeeperVersion), zooKeeperPOM)
}

// FetchCurator resolves Curator's recipes, a client of ZooKeeper, in the same way.
func FetchCurator(ctx context.Context, dir string) (string, error) {
	return fetchJava(ctx, filepath.Join(dir, "curator-"+curatorVersion), curatorPOM)
}

func fetchJava(ctx context.Context, dir, pom string) (string, error) {
	name := filepath.Base(dir)
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	classPath := filepath.Join(dir, "*")
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return classPath, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	unlock, err := lockFolder(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	defer func() { _ = unlock() }() // the lock ends with the process at the latest
	if _, err := os.Stat(done); err == nil {
		return classPath, nil // by another process meanwhile
	}
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, []byte(pom), 0o644); err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", file,
		"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch %s with Maven: %w\n%s", name, err, out)
	}
	return classPath, os.WriteFile(done, nil, 0o644)
}

// ZooKeeperCache is the folder in which the tests of this machine share what
// FetchZooKeeper has fetched.
func ZooKeeperCache() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "fencepost"), err
}

// The server needs the last two, which it takes for provided, to start at all.
const zooKeeperPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fencepost</groupId><artifactId>zookeeper-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>` + ZooKeeperVersion + `</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
`

const curatorVersion = "5.9.0"

// Without a logger, which would write all that ZooKeeper's client does.
const curatorPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fencepost</groupId><artifactId>curator-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.curator</groupId><artifactId>curator-recipes</artifactId><version>` + curatorVersion + `</version>
      <exclusions><exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
  </dependencies>
</project>
`

// StartZooKeeper starts the servers, in its turn, and returns when each of them serves.
func StartZooKeeper(ctx context.Context, config ZooKeeperConfig) (*ZooKeeper, error) {
	unlock, err := startAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	defer func() { _ = unlock() }()
	config.Servers = max(config.Servers, 1)
	if config.TickTime == 0 {
		config.TickTime = 500 * time.Millisecond
	}
	ports, err := reservePorts(portsOf * config.Servers)
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{ports: ports}
	for i := range config.Servers {
		s := &ZooKeeperServer{
			name: "zookeeper-" + strconv.Itoa(i),
			dir:  filepath.Join(config.Dir, "zookeeper-"+strconv.Itoa(i)), client: ports[portsOf*i],
			secure: ports[portsOf*i+3],
		}
		z.servers = append(z.servers, s)
		if err := s.prepare(i, config, ports); err != nil {
			return nil, errors.Join(err, z.Close())
		}
		if err := s.start(); err != nil {
			return nil, errors.Join(err, z.Close())
		}
	}
	for _, s := range z.servers {
		if err := s.awaitServing(ctx); err != nil {
			return nil, errors.Join(err, z.Close())
		}
	}
	return z, nil
}

// portsOf each server: for clients, for followers, for elections, for TLS.
const portsOf = 4

// Endpoints returns the servers' client addresses as host:port.
func (z *ZooKeeper) Endpoints() []string {
	var endpoints []string
	for _, s := range z.servers {
		endpoints = append(endpoints, s.Address())
	}
	return endpoints
}

// Store returns the value of the API server's --store flag for this ensemble.
func (z *ZooKeeper) Store() string { return "zookeeper://" + strings.Join(z.Endpoints(), ",") }

// Size returns the number of servers, running or not.
func (z *ZooKeeper) Size() int { return len(z.servers) }

// Server returns server i, counted from 0.
func (z *ZooKeeper) Server(i int) *ZooKeeperServer { return z.servers[i] }

// Leader returns the index of the server that leads, or of the only one. It
// waits for an election to end, until ctx ends.
func (z *ZooKeeper) Leader(ctx context.Context) (int, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for i, s := range z.servers {
			if mode, err := s.mode(ctx); err == nil && mode != "follower" {
				return i, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("find the leader of ZooKeeper: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Close kills every server and waits for them. Their data stays.
func (z *ZooKeeper) Close() error {
	var errs []error
	for _, s := range z.servers {
		errs = append(errs, s.Kill())
	}
	return errors.Join(append(errs, releasePorts(z.ports))...)
}

// ZooKeeperServer is one server of an ensemble. Its methods may not be called
// from two goroutines at once.
type ZooKeeperServer struct {
	running
	name   string
	dir    string
	args   []string
	client *port
	secure *port
}

// prepare empties the server's folder and writes its configuration.
func (s *ZooKeeperServer) prepare(i int, config ZooKeeperConfig, ports []*port) error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("prepare %s: %w", s.name, err)
	}
	s.log = filepath.Join(s.dir, "log")
	data := s.Data()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("prepare %s: %w", s.name, err)
	}
	cfg := filepath.Join(s.dir, "zoo.cfg")
	if err := os.WriteFile(cfg, []byte(s.zooCfg(data, config, ports)), 0o600); err != nil {
		return fmt.Errorf("prepare %s: %w", s.name, err)
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o600); err != nil {
		return fmt.Errorf("prepare %s: %w", s.name, err)
	}
	// A small heap, and no threads for a collector or a compiler that two
	// processors could not feed: several servers share the machine with the test.
	s.args = []string{
		"-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+PerfDisableSharedMem",
		"-Dzookeeper.admin.enableServer=false", "-Djava.net.preferIPv4Stack=true",
	}
	if !config.Optimized {
		s.args = append(s.args, "-XX:TieredStopAtLevel=1")
	}
	for _, p := range config.Properties {
		s.args = append(s.args, "-D"+p)
	}
	s.args = append(
		s.args, "-cp", config.Java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg,
	)
	return nil
}

func (s *ZooKeeperServer) zooCfg(data string, config ZooKeeperConfig, ports []*port) string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "tickTime=%d\ninitLimit=20\nsyncLimit=5\nmaxClientCnxns=0\n", config.TickTime.Milliseconds(),
	)
	fmt.Fprintf(
		&b, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n4lw.commands.whitelist=*\n", data,
		s.client.number,
	)
	if config.Secure {
		fmt.Fprintf(&b, "secureClientPort=%d\nsecureClientPortAddress=127.0.0.1\n", s.secure.number)
	}
	for i := range config.Servers {
		if config.Servers > 1 {
			fmt.Fprintf(
				&b, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[portsOf*i+1].number, ports[portsOf*i+2].number,
			)
		}
	}
	return b.String()
}

func (s *ZooKeeperServer) start() error {
	p, err := startProcess("java", s.Log(), s.args, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.process = p
	return nil
}

// awaitServing returns when the server answers as part of a working ensemble.
func (s *ZooKeeperServer) awaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	return s.process.await(ctx, s.name, func(ctx context.Context) error {
		_, err := s.mode(ctx)
		return err
	})
}

// mode asks the server what it is: standalone, leader or follower.
func (s *ZooKeeperServer) mode(ctx context.Context) (string, error) {
	if !s.Running() {
		return "", errNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(answer)) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", fmt.Errorf("%s answers %q", s.name, answer)
}

// Address returns the server's client address as host:port.
func (s *ZooKeeperServer) Address() string { return s.client.address() }

// SecureAddress returns where the server listens for TLS, as host:port.
func (s *ZooKeeperServer) SecureAddress() string { return s.secure.address() }

// Data is the folder that the server keeps its data in.
func (s *ZooKeeperServer) Data() string { return filepath.Join(s.dir, "data") }

// Start starts the server again on its data and ports, after killing it if it
// runs, and returns at once: a majority may have to come back first.
func (s *ZooKeeperServer) Start() error {
	if err := s.Kill(); err != nil {
		return err
	}
	return s.start()
}

// Restart starts the server again and returns when it serves.
func (s *ZooKeeperServer) Restart(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	return s.awaitServing(ctx)
}
