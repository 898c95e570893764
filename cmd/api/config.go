package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

const (
	envPrefix = "FENCEPOST_"

	// envSecret may hold the HS256 secret itself. It has no flag: command lines
	// are visible to other users.
	envSecret = "FENCEPOST_JWT_SECRET"

	minSecret = 32 // bytes

	storeEmbedded  = "embedded"
	storeEtcd      = "etcd"
	storeZooKeeper = "zookeeper"
)

// config is everything that can be set, checked.
type config struct {
	dev     bool
	devOpen bool // development on an address that others reach
	listen  string
	tlsCert string
	tlsKey  string

	clientCA   string // authorities of clients' certificates
	principals string // principals of these certificates
	oidc       oidcSettings
	opsListen  string
	store      string
	dataDir    string
	quotaMB    int64

	storeCA, storeCert, storeKey    string
	storeUsername, storePasswordSrc string

	secretFile, jwks, issuer, audience string
	claims                             auth.ClaimNames
	tokenKeyFile                       string
	fenceFloor                         uint64

	maxTTL, maxHold, drain seconds
	idleTimeout            seconds
	drainDelay             float64 // in seconds
	logFormat, logLevel    string
	debugListen            string
	file                   string // that says what flags and environment do not
	printOnly              bool   // what holds, and end
	proxyHops              uint
	basePath               string
	auditRetention         days
	webhooks               webhook.Settings
	limits                 *quota.Limits // of a tenant for which nothing is set

	// What the above comes to.
	secret    []byte
	tokenKey  []byte
	backend   string   // storeEmbedded, storeEtcd or storeZooKeeper
	endpoints []string // of an etcd cluster or a ZooKeeper ensemble
	chroot    string   // path in ZooKeeper, without a slash at its end
	storePass string
	tls       *tls.Config
	pair      *keyPair // that clients see; nil is no TLS
	plain     bool     // the session's cookie also works without TLS
	clients   *clients // whose certificates count; nil is none
	level     slog.Level
	policy    *webhook.Policy // where webhooks may go
	warnings  []string        // for the log, once there is one
}

const maxDrainDelay = 3600 // seconds

// seconds is a duration flag in seconds. What bounds it has is checked later, with the rest.
type seconds time.Duration

func (s *seconds) String() string { return fmt.Sprintf("%g", time.Duration(*s).Seconds()) }

// Type implements pflag.Value.
func (s *seconds) Type() string { return "seconds" }

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	var v float64
	if _, err := fmt.Sscanf(text+"\n", "%g\n", &v); err != nil || math.IsNaN(v) {
		return errors.New("must be a number of seconds")
	}
	v = min(max(v, -2*longestSeconds), 2*longestSeconds) // beyond, a time.Duration overflows
	*s = seconds(v * float64(time.Second))
	return nil
}

// The bounds of a duration flag that has none of its own, in seconds.
const shortestSeconds, longestSeconds = 0.001, 1e7

func (s seconds) check(flagName string) error {
	if v := time.Duration(s).Seconds(); v < shortestSeconds || v > longestSeconds {
		return usagef("--%s: must be from %g to %.0f", flagName, shortestSeconds, longestSeconds)
	}
	return nil
}

// newConfig returns the defaults of the flags that are no plain values.
func newConfig() *config {
	return &config{
		maxTTL: seconds(time.Hour), maxHold: seconds(50 * time.Second), drain: seconds(10 * time.Second),
		idleTimeout: seconds(620 * time.Second), auditRetention: days(audit.DefaultRetention),
	}
}

// parseConfig reads flags, environment variables for flags that are not given, and a file
// for the rest, and checks what they say together. Its error has all that is wrong. With
// --print-config it prints what holds.
func parseConfig(args []string, env environment, stdout io.Writer) (*config, error) {
	c := newConfig()
	f := c.flags(stdout)
	if slices.Contains(args, helpAll) {
		printServerHelp(stdout, f, true)
		return nil, pflag.ErrHelp
	}
	set, err := parse(f, args, env)
	if errors.Is(err, pflag.ErrHelp) {
		return nil, err
	}
	if unknown := unknownVariables(f, env); len(unknown) > 0 {
		c.warn("these environment variables set nothing: %s", strings.Join(unknown, ", "))
	}
	if _, unread := errors.AsType[*unreadError](err); !unread { // else it is unknown what was set
		err = errors.Join(err, c.resolveStore(set), c.resolveKeys(env), c.resolveRest())
	}
	if c.printOnly {
		printSettings(stdout, f, set, env)
	}
	return c, err
}

func (c *config) checkMaxTTL() error {
	least, given := c.minTTL(), time.Duration(c.maxTTL)
	if given < least || given > lock.MaxTTL {
		return usagef("--max-ttl-seconds: must be from %g, the store's shortest lease, to %g, a week: for as long a dead holder blocks its lock", least.Seconds(), lock.MaxTTL.Seconds())
	}
	return nil
}

// resolveRest checks what does not depend on other settings, or on few.
func (c *config) resolveRest() error {
	c.checkFiles()
	defer c.resolveCookie() // which depends on the others
	return errors.Join(
		c.resolveLog(), c.checkListen(), c.checkBasePath(), c.checkBeside(), c.resolveTLS(),
		c.resolveClients(), c.oidc.resolve(), c.resolveWebhooks(), c.checkMaxTTL(), c.checkNumbers())
}

func (c *config) resolveLog() (err error) {
	if c.logFormat != "json" && c.logFormat != "text" {
		err = usagef("--log-format: %q is neither json nor text", c.logFormat)
	}
	if c.level.UnmarshalText([]byte(c.logLevel)) != nil {
		err = errors.Join(err, usagef("--log-level: %q is not debug, info, warn or error", c.logLevel))
	}
	return err
}

func (c *config) checkBasePath() error {
	valid := regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)
	if c.basePath != "" && !valid.MatchString(c.basePath) {
		return usagef("--base-path: %q is not a path such as /fencepost, without a slash at its end", c.basePath)
	}
	return nil
}

func (c *config) checkListen() error {
	if err := checkAddress("listen", c.listen); err != nil {
		return err
	}
	if c.dev && !c.devOpen && !isLoopback(c.listen) {
		return usagef("--dev on %s, which others may reach, with a token for operators: listen on 127.0.0.1, or say --dev-insecure-listen", c.listen)
	}
	return nil
}

// checkBeside checks the addresses besides the one where clients are, which may be empty.
func (c *config) checkBeside() (err error) {
	if c.opsListen != "" {
		err = checkAddress("ops-listen", c.opsListen)
	}
	if c.debugListen != "" {
		err = errors.Join(err, checkAddress("debug-listen", c.debugListen))
	}
	return err
}

func checkAddress(flag, address string) error {
	if !mayListenAt(address) {
		return usagef("--%s: %q is not host:port, with a port from 0 to 65535", flag, address)
	}
	return nil
}

// mayListenAt reports whether a text is an address to listen at, whose port may have a name.
func mayListenAt(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
	return err == nil
}

// maxProxyHops is more than the longest chain of proxies that has a reason.
const maxProxyHops = 16

func (c *config) checkNumbers() error {
	wrong := []error{
		c.maxHold.check("max-hold-seconds"), c.drain.check("drain-seconds"),
		c.idleTimeout.check("idle-timeout-seconds"), c.auditRetention.check("audit-retention"),
	}
	if err := store.CheckFloor(c.fenceFloor, 0); err != nil {
		wrong = append(wrong, usagef("--fence-floor: %v", err))
	}
	if c.proxyHops > maxProxyHops {
		wrong = append(wrong, usagef("--trusted-proxy-hops: must be from 0 to %d", maxProxyHops))
	}
	if c.quotaMB < 1 {
		wrong = append(wrong, usagef("--data-quota-mb: must be positive"))
	}
	if !(c.drainDelay >= 0 && c.drainDelay <= maxDrainDelay) {
		wrong = append(wrong, usagef("--drain-delay-seconds: must be from 0 to %d", maxDrainDelay))
	}
	return errors.Join(wrong...)
}

func (c *config) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// isLoopback reports whether only this machine reaches the address. A name is taken
// for one that others reach, unless it is the one that means this machine.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip, _ := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || ip.Unmap().IsLoopback())
}

// checkFiles warns about secrets of the operator's that others may read. What is
// right for them is for the operator to know.
func (c *config) checkFiles() {
	for name, path := range map[string]string{
		"jwt-secret-file": c.secretFile, "token-key-file": c.tokenKeyFile, "store-key": c.storeKey,
		"store-password-file": c.storePasswordSrc, "tls-key": c.tlsKey,
	} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&forOthers != 0 {
			c.warn("--%s: %s is secret, and other users of this machine may read or change it (mode %04o)", name, path, info.Mode().Perm())
		}
	}
}

const (
	forOthers   fs.FileMode = 0o007
	forNotOurs  fs.FileMode = 0o077
	othersWrite fs.FileMode = 0o022
)
