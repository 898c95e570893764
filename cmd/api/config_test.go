package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parsed reads a configuration that must be right.
func parsed(t *testing.T, env environment, args ...string) *config {
	t.Helper()
	c, err := parseConfig(args, env, io.Discard)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return c
}

// withoutPools takes out what is never equal: two pools with the same certificates, and what is
// kept up with.
func withoutPools(c *config) *config {
	if c.tls != nil {
		c.tls.RootCAs = nil
	}
	if c.clients != nil {
		c.clients = new(clients)
	}
	if c.pair != nil { // each is one of its own
		c.pair = new(keyPair)
	}
	if c.oidc.config != nil {
		c.oidc.rights, c.oidc.config.Rights = nil, nil
	}
	return c
}

// base is the least that a flag needs beside it.
func base(t *testing.T, name string) []string {
	t.Helper()
	args := []string{"--jwt-secret-file", file(t, secret)}
	switch name {
	case "dev", "jwt-secret-file":
		args = nil
	}
	switch name {
	case "client-ca", "principals":
		cert, key := newCertificate(t)
		args = append(args, "--tls-cert", cert, "--tls-key", key)
	}
	if strings.HasPrefix(name, "store") {
		args = append(args, "--store", "etcd://127.0.0.1:2379")
	}
	return args
}

// TestEveryFlagByEnvironment: each flag does something, its variable and its line in a file do
// the same, the flag goes before the variable, and that before the file.
func TestEveryFlagByEnvironment(t *testing.T) {
	cert, key := newCertificate(t)
	values := map[string][2]string{ // and another value, or ""
		"dev": {"true", ""}, "dev-insecure-listen": {"true", ""}, "trusted-proxy-hops": {"2", "1"},
		"base-path": {"/a/b", "/c"}, "audit-retention": {"7d", "8d"}, "listen": {"127.0.0.1:9999", ":1"},
		"tls-cert": {cert, ""}, "tls-key": {key, ""}, "client-ca": {cert, ""},
		"principals": {file(t, `{"principals":[]}`), ""},
		"ops-listen": {"127.0.0.1:0", "127.0.0.1:1"}, "store": {"etcd://a:1,b:2", "etcd://c:3"},
		"data-dir": {"elsewhere", "here"}, "data-quota-mb": {"17", "18"},
		"store-ca": {cert, "system"}, "store-cert": {cert, ""}, "store-key": {key, ""},
		"store-username": {"root", "admin"}, "store-password-file": {file(t, "x"), file(t, "y\n")},
		"jwt-secret-file": {file(t, secret), file(t, secret+"2\r\n")},
		"jwks":            {"https://a.example/keys", "https://b.example/keys"},
		"jwt-issuer":      {"a", "b"}, "jwt-audience": {"a", "b"},
		"jwt-tenant-claim": {"https://a.example/tenant", "tid"}, "jwt-scope-claim": {"scp", "roles"},
		"jwt-scope-prefix": {"a/", "b/"}, "jwt-locks-claim": {"a", "b"},
		"token-key-file": {file(t, secret), file(t, secret+"2")},
		"fence-floor":    {"1000", "2000"}, "max-ttl-seconds": {"60", "61.5"},
		"max-hold-seconds": {"2.5", "3"}, "drain-seconds": {"1", "2"}, "idle-timeout-seconds": {"1", "2"},
		"drain-delay-seconds": {"1", "0"},
		"log-format":          {"text", "json"}, "log-level": {"debug", "WARN"},
		"debug-listen": {"127.0.0.1:0", "127.0.0.1:1"},
		"oidc": {
			oidcOf(t, "https://a.example/back"),
			oidcOf(t, "https://b.example/back") + ",scopes=email groups,name_claim=email",
		},
		"default-quotas": {"held_locks=7,requests_per_second=0", "sets=0"},
		"webhook-allow":  {"10.0.0.0/8,fd12::/16", "127.0.0.1"}, "webhook-allow-http": {"true", ""},
		"webhook-ports": {"443,8443", "*"},
	}
	pairs := map[string]string{
		"tls-cert": "tls-key", "tls-key": "tls-cert", "client-ca": "principals",
		"principals": "client-ca", "store-cert": "store-key", "store-key": "store-cert",
		"store-username": "store-password-file", "store-password-file": "store-username",
	}
	new(config).flags(io.Discard).VisitAll(func(f *pflag.Flag) {
		if f.Name == configFlag || f.Name == printConfigFlag { // see settings_test.go
			return
		}
		v, known := values[f.Name]
		if !known {
			t.Errorf("--%s is not tested here", f.Name)
			return
		}
		args := base(t, f.Name)
		if f.Name == "store" {
			args = args[:2]
		}
		if other, needs := pairs[f.Name]; needs {
			args = append(args, "--"+other, values[other][0])
		}
		name := "FENCEPOST_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		byFlag := withoutPools(parsed(t, nil, append(args, "--"+f.Name+"="+v[0])...))
		byEnv := withoutPools(parsed(t, environment{name: v[0]}, args...))
		if !reflect.DeepEqual(byFlag, byEnv) {
			t.Errorf("%s: %+v, and by the environment %+v", f.Name, byFlag, byEnv)
		}
		settings := file(t, f.Name+": "+strconv.Quote(v[0])+"\n")
		byFile := withoutPools(parsed(t, environment{variable(configFlag): settings}, args...))
		if byFile.file = ""; !reflect.DeepEqual(byFlag, byFile) {
			t.Errorf("%s: %+v, and by a file %+v", f.Name, byFlag, byFile)
		}
		if _, alone := pairs[f.Name]; !alone && f.Name != "dev" && f.Name != "jwt-secret-file" {
			if reflect.DeepEqual(byFlag, withoutPools(parsed(t, environment{name: ""}, args...))) {
				t.Errorf("--%s changes nothing", f.Name)
			}
		}
		if v[1] == "" {
			return
		}
		other := withoutPools(parsed(t, nil, append(args, "--"+f.Name+"="+v[1])...))
		if again := parsed(
			t, environment{name: v[0]}, append(args, "--"+f.Name+"="+v[1])...,
		); reflect.DeepEqual(byFlag, other) || !reflect.DeepEqual(other, withoutPools(again)) {
			t.Errorf("--%s does not go before %s", f.Name, name)
		}
		over := withoutPools(parsed(t, environment{name: v[1]}, append(args, "--config", settings)...))
		if over.file = ""; !reflect.DeepEqual(other, over) {
			t.Errorf("%s does not go before a file", name)
		}
	})
}

// TestDevelopmentIsLocal: --dev listens on loopback unless a flag says otherwise.
func TestDevelopmentIsLocal(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.1.2.3:1", "localhost:1", "[::1]:1"} {
		parsed(t, nil, "--dev", "--listen", listen)
	}
	parsed(t, nil, "--dev", "--listen", "0.0.0.0:1", "--dev-insecure-listen")
	parsed(t, nil, "--jwt-secret-file", file(t, secret), "--listen", "0.0.0.0:1")
}

// TestAddressesToListenAt: an unusable address is refused before anything starts.
func TestAddressesToListenAt(t *testing.T) {
	for _, listen := range []string{
		"127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1", "127.0.0.1:no-such-service",
	} {
		fails(
			t, exitConfig, nil, []string{"--dev", "--data-dir", t.TempDir(), "--listen", listen}, "--listen",
			listen, "with a port from 0 to 65535",
		)
		fails(
			t, exitConfig, nil, []string{"--dev", "--data-dir", t.TempDir(), "--ops-listen", listen},
			"--ops-listen", listen, "with a port from 0 to 65535",
		)
	}
	parsed(t, nil, "--dev", "--listen", "127.0.0.1:http", "--ops-listen", ":0")
}

// TestWarnings: of what is dangerous and may be meant.
func TestWarnings(t *testing.T) {
	keys := []string{"--jwks", "https://a.example/keys"}
	exposed, closed := file(t, secret), file(t, secret)
	if err := errors.Join(os.Chmod(exposed, 0o644), os.Chmod(closed, 0o640)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{keys, "--jwt-audience"},
		{append(keys[:2:2], "--jwt-issuer", "a"), "--jwt-audience"},
		{append(keys[:2:2], "--jwt-audience", "a"), "--jwt-issuer"},
		{append(keys[:2:2], "--jwt-issuer", "a", "--jwt-audience", "a"), ""},
		{[]string{"--jwt-secret-file", exposed}, "--jwt-secret-file: " + exposed},
		{[]string{"--jwt-secret-file", closed}, ""},
		{
			[]string{"--jwt-secret-file", closed, "--token-key-file", exposed},
			"--token-key-file: " + exposed,
		},
	} {
		got := strings.Join(parsed(t, nil, c.args...).warnings, "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) ||
			strings.Contains(got, secret) {
			t.Errorf("%v warns %q, want %q", c.args, got, c.want)
		}
	}
	if info, err := os.Stat(exposed); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the operator's file was changed: %v, %v", info.Mode(), err)
	}
}

// TestOwnFilesAreClosed: what --dev made, and others could read.
func TestOwnFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	names := []string{filepath.Join(dir, devSecretFile), filepath.Join(dir, devTokenFile)}
	for _, name := range names {
		if err := errors.Join(
			os.WriteFile(name, []byte(secret), 0o600), os.Chmod(name, 0o644),
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := &config{dataDir: dir}
	if got, err := c.devSecret(); err != nil || string(got) != secret {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	if text := strings.Join(c.warnings, "\n"); len(c.warnings) != 3 || !strings.Contains(
		text, names[0],
	) || !strings.Contains(text, names[1]) || !strings.Contains(text, "--data-dir") {
		t.Errorf("warnings %q", c.warnings)
	}
	c = &config{dataDir: t.TempDir()}
	if _, err := c.devSecret(); err != nil || len(c.warnings) != 0 {
		t.Errorf("a new folder: %v, %q", err, c.warnings)
	}
}

// TestResolved: what several flags come to together.
func TestResolved(t *testing.T) {
	cert, key := newCertificate(t)
	keys := []string{
		"--jwt-secret-file", file(t, secret+"\r\n"), "--token-key-file",
		file(t, strings.Repeat("k", 32)+"\n"),
	}
	c := parsed(t, nil, append(keys, "--store", "etcd://a:1,[::1]:2/",
		"--store-ca", cert, "--store-cert", cert, "--store-key", key,
		"--store-username", "root", "--store-password-file", file(t, "pass word\n"))...)
	if strings.Join(c.endpoints, " ") != "a:1 [::1]:2" || c.storePass != "pass word" ||
		string(c.secret) != secret || len(c.tokenKey) != 32 {
		t.Errorf("%+v", c)
	}
	if c.tls == nil || c.tls.RootCAs == nil || len(c.tls.Certificates) != 1 ||
		c.tls.InsecureSkipVerify {
		t.Errorf("TLS %+v", c.tls)
	}
	if c := parsed(
		t, nil, append(keys, "--store", "etcd://a:1", "--store-ca", "system")...,
	); c.tls == nil || c.tls.RootCAs != nil || c.tls.Certificates != nil {
		t.Errorf("TLS with the system's authorities: %+v", c.tls)
	}
	image := environment{"FENCEPOST_DATA_DIR": "/var/lib", "FENCEPOST_DATA_QUOTA_MB": "7"}
	if c := parsed(t, image, append(keys, "--store", "etcd://a:1")...); len(c.endpoints) != 1 {
		t.Errorf("what an image sets for all its stores: %+v", c)
	}
	if c := parsed(t, nil, "--dev", "--store", "etcd://a:1", "--data-dir", "x"); c.dataDir != "x" {
		t.Errorf("the folder of the development secret: %+v", c)
	}
}

// TestContradictions: flags that make no sense, alone or together, are refused
// before anything is opened, and the message names them.
func TestContradictions(t *testing.T) {
	good := []string{"--jwt-secret-file", file(t, secret)}
	etcd := append(good, "--store", "etcd://a:1")
	cert, key := newCertificate(t)
	with := func(some []string, more ...string) []string {
		return append(append([]string{}, some...), more...)
	}
	inline := environment{"FENCEPOST_JWT_SECRET": secret}
	for _, c := range []struct {
		env  environment
		args []string
		code int
		says []string
	}{
		{nil, nil, exitConfig, []string{"no key", "--jwt-secret-file", "--jwks", "--dev"}},
		{inline, good, exitConfig, []string{"FENCEPOST_JWT_SECRET", "--jwt-secret-file", "contradict"}},
		{inline, []string{"--dev"}, exitConfig, []string{"--dev", "FENCEPOST_JWT_SECRET"}},
		{nil, with(good, "--dev"), exitConfig, []string{"--dev", "--jwt-secret-file"}},
		{nil, []string{"--dev", "--jwks", "https://a.example"}, exitConfig, []string{"--dev", "--jwks"}},
		{environment{"FENCEPOST_DEV": "true"}, good, exitConfig, []string{"--dev"}},
		{
			nil,
			[]string{"--dev", "--listen", "0.0.0.0:8080"},
			exitConfig,
			[]string{"--dev", "0.0.0.0:8080", "--dev-insecure-listen"},
		},
		{nil, []string{"--dev", "--listen", ":8080"}, exitConfig, []string{"--dev-insecure-listen"}},
		{nil, []string{"--dev", "--listen", "[::]:8080"}, exitConfig, []string{"--dev-insecure-listen"}},
		{
			nil,
			[]string{"--dev", "--listen", "192.0.2.1:8080"},
			exitConfig,
			[]string{"--dev-insecure-listen"},
		},
		{
			nil,
			[]string{"--dev", "--listen", "somewhere:8080"},
			exitConfig,
			[]string{"--dev-insecure-listen"},
		},
		{nil, with(good, "--base-path", "/"), exitConfig, []string{"--base-path", "such as /fencepost"}},
		{nil, with(good, "--base-path", "fencepost"), exitConfig, []string{"--base-path"}},
		{nil, with(good, "--base-path", "/a/../b"), exitConfig, []string{"--base-path"}},
		{nil, with(good, "--base-path", "/a%2Fb"), exitConfig, []string{"--base-path"}},
		{
			nil, with(good, "--audit-retention", "0d"), exitConfig,
			[]string{"--audit-retention", "from 1d to 90d"},
		},
		{
			nil, with(good, "--audit-retention", "91d"), exitConfig,
			[]string{"--audit-retention", "from 1d to 90d"},
		},
		{
			nil, with(good, "--audit-retention", "720h"), exitConfig,
			[]string{"-audit-retention", "such as 30d"},
		},
		{
			nil, with(good, "--trusted-proxy-hops", "17"), exitConfig,
			[]string{"--trusted-proxy-hops", "from 0 to 16"},
		},
		{nil, with(good, "--trusted-proxy-hops", "-1"), exitConfig, []string{"-trusted-proxy-hops"}},
		{
			nil, with(good, "--webhook-allow", "10.0.0.0/8,receivers"), exitConfig,
			[]string{"--webhook-allow", "receivers"},
		},
		{
			nil, with(good, "--webhook-allow", "10.0.0.1/8"), exitConfig,
			[]string{"--webhook-allow", "10.0.0.0/8"},
		},
		{
			nil, with(good, "--webhook-allow", "10.0.0.0/8", "--webhook-ports", "443,https"), exitConfig,
			[]string{"--webhook-ports", "https"},
		},
		{nil, with(good, "--webhook-ports", "0"), exitConfig, []string{"--webhook-ports", "65535"}},
		{environment{"FENCEPOST_DEV": "maybe"}, good, exitConfig, []string{"FENCEPOST_DEV"}},
		{
			environment{"FENCEPOST_DRAIN_SECONDS": "soon"},
			good, exitConfig,
			[]string{"FENCEPOST_DRAIN_SECONDS", "must be a number of seconds"},
		},
		{nil, with(good, "--jwt-tenant-claim", "sub"), exitConfig, []string{"--jwt-tenant-claim"}},
		{
			environment{"FENCEPOST_JWT_SECRET": strings.Repeat("s", 31)},
			nil, 1,
			[]string{"FENCEPOST_JWT_SECRET", "31 bytes", "at least 32"},
		},
		{
			nil,
			[]string{"--jwt-secret-file", file(t, strings.Repeat("s", 31)+"\n")},
			1,
			[]string{"--jwt-secret-file", "31 bytes", "at least 32"},
		},
		{
			nil,
			[]string{"--jwt-secret-file", "/none"},
			1,
			[]string{"--jwt-secret-file", "/none", "no such file"},
		},
		{nil, []string{"--jwt-secret-file", t.TempDir()}, 1, []string{"--jwt-secret-file", "directory"}},
		{
			nil, with(good, "--token-key-file", file(t, strings.Repeat("k", 31))), 1,
			[]string{"--token-key-file", "31 bytes", "at least 32"},
		},
		{nil, with(good, "--token-key-file", "/none"), 1, []string{"--token-key-file", "no such file"}},

		{
			nil, with(good, "--store", "redis://a:1"), exitConfig,
			[]string{"--store", "redis://a:1", "embedded", "etcd://"},
		},
		{nil, with(good, "--store", "etcd"), exitConfig, []string{"--store", "etcd://host:port"}},
		{nil, with(good, "--store", "etcd://"), exitConfig, []string{"--store", "not host:port"}},
		{
			nil, with(good, "--store", "etcd://a:1,b"), exitConfig,
			[]string{"--store", `"b"`, "not host:port"},
		},
		{
			nil, with(good, "--store", "etcd://a:99999"), exitConfig,
			[]string{"--store", `"a:99999"`, "not host:port", "65535"},
		},
		{
			nil, with(good, "--store", "etcd://:2379"), exitConfig,
			[]string{"--store", `":2379"`, "not host:port"},
		},
		{
			nil, with(good, "--store", "zookeeper://127.0.0.1:99999/x"), exitConfig,
			[]string{"--store", `"127.0.0.1:99999"`, "not host:port", "65535"},
		},
		{
			nil, with(good, "--store", "zookeeper://a:1/locks/"), exitConfig,
			[]string{"--store", `"/locks/"`, "not a path in ZooKeeper"},
		},
		{
			nil, with(good, "--store", "zookeeper://a:1/locks?x=1"), exitConfig,
			[]string{"--store", `"/locks?x=1"`, "not a path in ZooKeeper", `"?"`},
		},
		{
			nil, with(good, "--store", "zookeeper://a:1/a%2Fb"), exitConfig,
			[]string{"--store", `"/a%2Fb"`, "not a path in ZooKeeper", `"%"`},
		},
		{
			nil,
			with(
				good, "--store", "zookeeper://a:1", "--store-username", "a:b", "--store-password-file",
				file(t, "x"),
			),
			exitConfig,
			[]string{"--store-username", `"a:b"`, "colon"},
		},
		{nil, with(good, "--store-ca", "system"), exitConfig, []string{"--store-ca", "embedded"}},
		{nil, with(good, "--store-ca", cert), exitConfig, []string{"--store-ca", "embedded"}},
		{environment{"FENCEPOST_STORE_CA": cert}, good, exitConfig, []string{"--store-ca", "embedded"}},
		{nil, with(good, "--store-cert", cert), exitConfig, []string{"--store-cert", "embedded"}},
		{nil, with(good, "--store-key", key), exitConfig, []string{"--store-key", "embedded"}},
		{
			nil, with(good, "--store-username", "root"), exitConfig,
			[]string{"--store-username", "embedded"},
		},
		{
			nil, with(good, "--store-password-file", file(t, "x")), exitConfig,
			[]string{"--store-password-file", "embedded"},
		},
		{
			nil, with(etcd, "--data-dir", "x"), exitConfig,
			[]string{"--data-dir", "only the embedded store"},
		},
		{nil, []string{"--dev", "--data-dir", ""}, exitConfig, []string{"--data-dir is empty"}},
		{
			nil, with(etcd, "--data-quota-mb", "7"), exitConfig,
			[]string{"--data-quota-mb", "only the embedded store"},
		},
		{
			nil, with(etcd, "--store-cert", cert), exitConfig,
			[]string{"--store-cert", "--store-key", "need each other"},
		},
		{
			nil, with(etcd, "--store-key", key), exitConfig,
			[]string{"--store-cert", "--store-key", "need each other"},
		},
		{
			nil, with(etcd, "--store-username", "root"), exitConfig,
			[]string{"--store-username", "--store-password-file", "need each other"},
		},
		{
			nil, with(etcd, "--store-password-file", file(t, "x")), exitConfig,
			[]string{"--store-username", "--store-password-file", "need each other"},
		},
		{
			nil, with(etcd, "--store-username", "root", "--store-password-file", file(t, "\n")), 1,
			[]string{"--store-password-file", "0 bytes"},
		},
		{
			nil, with(etcd, "--store-username", "root", "--store-password-file", "/none"), 1,
			[]string{"--store-password-file", "no such file"},
		},
		{nil, with(etcd, "--store-ca", "/none"), 1, []string{"--store-ca", "no such file"}},
		{nil, with(etcd, "--store-ca", file(t, "x")), 1, []string{"--store-ca", "no certificate"}},
		{
			nil, with(etcd, "--store-cert", cert, "--store-key", cert), 1,
			[]string{"--store-cert", "--store-key"},
		},

		{
			nil, with(good, "--log-format", "xml"), exitConfig,
			[]string{"--log-format", `"xml"`, "json", "text"},
		},
		{nil, with(good, "--log-level", "loud"), exitConfig, []string{"--log-level", `"loud"`, "debug"}},
		{nil, with(good, "--listen", "8080"), exitConfig, []string{"--listen", `"8080"`, "host:port"}},
		{
			nil, with(good, "--ops-listen", "bar", "--debug-listen", "baz"), exitConfig,
			[]string{"--ops-listen", `"bar"`, "--debug-listen", `"baz"`, "host:port"},
		},
		{
			nil, with(good, "--webhook-ports", "x", "--webhook-allow", "10.0.0/8"), exitConfig,
			[]string{"--webhook-ports", `"x"`, "--webhook-allow", `"10.0.0/8"`},
		},
		{
			nil, with(good, "--tls-cert", "no-cert", "--tls-key", "no-key"), 1,
			[]string{"--tls-cert and --tls-key", "no-cert", "no-key"},
		},
		{
			nil, with(good, "--max-ttl-seconds", "1.9"), exitConfig,
			[]string{"--max-ttl-seconds", "from 2,", "to 604800"},
		},
		{
			nil, with(good, "--max-ttl-seconds", "-4"), exitConfig,
			[]string{"--max-ttl-seconds", "from 2,", "to 604800"},
		},
		{
			nil, with(good, "--max-hold-seconds", "0"), exitConfig,
			[]string{"--max-hold-seconds: must be from 0.001 to 10000000"},
		},
		{
			nil, with(good, "--max-hold-seconds", "1e300"), exitConfig,
			[]string{"--max-hold-seconds: must be from"},
		},
		{
			nil, with(good, "--max-hold-seconds", "-Inf"), exitConfig,
			[]string{"--max-hold-seconds: must be from"},
		},
		{
			nil, with(good, "--drain-seconds", "1e-10"), exitConfig,
			[]string{"--drain-seconds: must be from 0.001 to 10000000"},
		},
		{
			nil, with(good, "--drain-seconds", "1e8"), exitConfig,
			[]string{"--drain-seconds: must be from 0.001 to 10000000"},
		},
		{
			nil, with(good, "--max-ttl-seconds", "604800.1"), exitConfig,
			[]string{"--max-ttl-seconds", "from 2,", "to 604800", "a week"},
		},
		{nil, with(good, "--data-quota-mb", "0"), exitConfig, []string{"--data-quota-mb", "positive"}},
		{nil, with(good, "--data-quota-mb", "-1"), exitConfig, []string{"--data-quota-mb", "positive"}},
		{nil, with(good, "--data-quota-mb", "many"), exitConfig, []string{"--data-quota-mb: must be"}},
		{nil, with(good, "--fence-floor", "-1"), exitConfig, []string{"--fence-floor: must be a whole"}},
		{
			nil, with(good, "--fence-floor", "9007199254740991"), exitConfig,
			[]string{"--fence-floor", "too high", "2^53", "at most"},
		},
		{
			nil, with(good, "--fence-floor", "18446744073709551615"), exitConfig,
			[]string{"--fence-floor", "too high", "2^53"},
		},
		{nil, with(good, "--dev=maybe"), exitConfig, []string{"--dev: must be true or false"}},
	} {
		fails(t, c.code, c.env, c.args, c.says...)
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0.25": 250 * time.Millisecond, "1e3": 1000 * time.Second,
		"10000000": 1e7 * time.Second,
	} {
		var s seconds
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%q: %v, %v", text, time.Duration(s), err)
		}
	}
	for _, text := range []string{"", "1s", "x", "1 2", "NaN", "nan", "0x", "1,5"} {
		var s seconds
		if err := s.Set(text); err == nil || s != 0 {
			t.Errorf("%q is taken for %v", text, time.Duration(s))
		}
	}
}

// TestSessionCookie: it is for https alone, but on a loopback address without TLS or a proxy that
// has it.
func TestSessionCookie(t *testing.T) {
	cert, key := newCertificate(t)
	tls := []string{"--tls-cert", cert, "--tls-key", key}
	oidc := func(redirect string) []string { return []string{"--oidc", oidcOf(t, redirect)} }
	for name, c := range map[string]struct {
		args  []string
		plain bool
	}{
		"Default":         {nil, true},
		"Name":            {[]string{"--listen", "localhost:8080"}, true},
		"Outside":         {[]string{"--listen", "0.0.0.0:8080"}, false},
		"EveryAddress":    {[]string{"--listen", ":8080"}, false},
		"TLS":             {tls, false},
		"Proxy":           {[]string{"--trusted-proxy-hops", "1"}, false},
		"ProxyByProvider": {oidc("https://locks.example/dashboard/sign-in/oidc/callback"), false},
		"Provider":        {oidc("http://127.0.0.1:8080/dashboard/sign-in/oidc/callback"), true},
	} {
		if got := parsed(
			t, nil, append([]string{"--jwt-secret-file", file(t, secret)}, c.args...)...,
		); got.plain != c.plain {
			t.Errorf("%s: plain is %t, want %t", name, got.plain, c.plain)
		}
	}
}

// oidcOf are the settings of an identity provider.
func oidcOf(t *testing.T, redirect string) string {
	t.Helper()
	return "issuer=https://login.example,client_id=a,redirect_url=" + redirect +
		",principals=" + file(t, `{"principals":[]}`)
}

// TestSecretWithAByteOrderMark: an editor's mark would be an invisible part of the secret.
func TestSecretWithAByteOrderMark(t *testing.T) {
	marked, good := file(t, "\ufeff"+secret), environment{"FENCEPOST_JWT_SECRET": secret}
	for flagName, args := range map[string][]string{
		"--jwt-secret-file":     nil,
		"--token-key-file":      nil,
		"--store-password-file": {"--store", "etcd://a:1", "--store-username", "root"},
	} {
		env := good
		if flagName == "--jwt-secret-file" {
			env = nil
		}
		fails(t, 1, env, append(args, flagName, marked), flagName, marked, "byte order mark")
	}
}

// TestSecretsAreNotQuoted: neither bad ones nor good ones.
func TestSecretsAreNotQuoted(t *testing.T) {
	short := "marker-marker"
	for _, r := range []result{
		command(t, environment{"FENCEPOST_JWT_SECRET": short}),
		command(t, nil, "--jwt-secret-file", file(t, short)),
		command(t, environment{"FENCEPOST_JWT_SECRET": secret}, "--token-key-file", file(t, short)),
		command(t, environment{"FENCEPOST_JWT_SECRET": short}, "token", "--tenant", "acme"),
		command(t, environment{"FENCEPOST_JWT_SECRET": short}, "--help"),
		command(t, environment{"FENCEPOST_JWT_SECRET": secret}, "token", "--tenant", "ACME"),
	} {
		if strings.Contains(r.errOut+r.out, short) || strings.Contains(r.errOut+r.out, secret) {
			t.Errorf("it says %q", r.errOut)
		}
	}
}

// TestNoURLIsQuotedWithItsPassword: a setting that is no good is not quoted if it may have a
// password.
func TestNoURLIsQuotedWithItsPassword(t *testing.T) {
	t.Parallel()
	const marker = "hunter2-marker"
	good := environment{"FENCEPOST_JWT_SECRET": secret}
	oidc := oidcOf(t, "https://a.example/back")
	for _, url := range []string{
		"https://ann:" + marker + "@a.example/x", "https://a.example/x?key=" + marker,
		"ann:" + marker + "@a.example:1", "https://ann:" + marker + "@a.example:port",
		"https://ann:" + marker + "@a.example/%zz", "https://a.invalid/#" + marker,
	} {
		for _, args := range [][]string{
			{"--oidc", strings.ReplaceAll(oidc, "https://a.example/back", url)},
			{"--oidc", strings.ReplaceAll(oidc, "https://login.example", url)},
			{"--oidc", url},
			{"--store", url},
			{"--store", url, "--data-quota-mb", "17"},
			{"--jwks", "https://" + strings.TrimPrefix(url, "https://"), "--listen", "nowhere"},
			{"health", "--url", url},
		} {
			r := command(t, good, args...)
			if r.code == 0 || strings.Contains(r.errOut+r.out, marker) {
				t.Errorf("%q ends with %d: %s%s", args, r.code, r.errOut, r.out)
			}
		}
	}
}

// certificate writes a certificate and its key.
func newCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secretPart, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secretPart},
	} {
		var text bytes.Buffer
		if err := pem.Encode(&text, block); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
