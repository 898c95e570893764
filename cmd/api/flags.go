package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// flags returns the flags of the server.
func (c *config) flags(stdout io.Writer) *pflag.FlagSet {
	f := newFlags(serverFlags, stdout)
	c.startFlags(f)
	c.listenFlags(f)
	c.storeFlags(f)
	c.tokenFlags(f)
	c.signInFlags(f)
	c.limitFlags(f)
	c.webhookFlags(f)
	c.logFlags(f)
	return f
}

func (c *config) startFlags(f *pflag.FlagSet) {
	f.StringVar(&c.file, configFlag, "",
		"YAML or JSON `file` with settings; flags and environment variables win")
	f.BoolVar(&c.printOnly, printConfigFlag, false,
		"check all settings, print each with its source, and exit")
	f.BoolVar(&c.dev, "dev", false,
		"development: create an HS256 secret in --data-dir, print a bearer token")
	f.BoolVar(&c.devOpen, "dev-insecure-listen", false,
		"let --dev listen on an address that other machines reach; the token makes them operators")
}

func (c *config) listenFlags(f *pflag.FlagSet) {
	f.StringVar(&c.listen, "listen", "127.0.0.1:8080",
		"`address` for clients; port 0 takes a free port")
	f.StringVar(&c.opsListen, "ops-listen", "",
		"separate `address` for /healthz, /readyz and /metrics, without TLS")
	f.StringVar(&c.debugListen, "debug-listen", "", "`address` for the Go profiler at /debug/pprof/")
	f.StringVar(&c.tlsCert, "tls-cert", "",
		"PEM `file` with the certificate chain, read again each second")
	f.StringVar(&c.tlsKey, "tls-key", "", "PEM `file` with its key; both turn TLS on")
	f.StringVar(&c.basePath, "base-path", "",
		"`path` under which a proxy publishes the server, such as /fencepost")
	f.UintVar(&c.proxyHops, "trusted-proxy-hops", 0,
		"`number` of proxies before the server that append to X-Forwarded-For; 0 ignores the header")
	f.Var(&c.idleTimeout, "idle-timeout-seconds",
		"close an idle connection after so many `seconds`; keep it above the load balancer's timeout")
	f.Var(&c.maxHold, "max-hold-seconds", "hold a waiting request open for at most so many `seconds`")
}

func (c *config) storeFlags(f *pflag.FlagSet) {
	f.StringVar(&c.store, "store", storeEmbedded,
		"embedded, etcd://host:port,host:port, or zookeeper://host:port,host:port/chroot")
	f.StringVar(&c.dataDir, "data-dir", "./data",
		"`folder` of the embedded store and the --dev secret")
	f.Int64Var(&c.quotaMB, "data-quota-mb", 4096, "largest size of the embedded store, in `MiB`")
	f.StringVar(&c.storeCA, "store-ca", "",
		"PEM `file` with the authorities of the store's certificate, or system; turns TLS on")
	f.StringVar(&c.storeCert, "store-cert", "",
		"PEM `file` with the certificate that the server shows to the store")
	f.StringVar(&c.storeKey, "store-key", "", "PEM `file` with the key of --store-cert")
	f.StringVar(&c.storeUsername, "store-username", "", "`user` name at the store")
	f.StringVar(&c.storePasswordSrc, "store-password-file", "",
		"`file` with the password of --store-username")
	f.Uint64Var(&c.fenceFloor, "fence-floor", 0,
		"`number` above every fence ever issued, after a restore or move")
	f.StringVar(&c.tokenKeyFile, "token-key-file", "",
		"`file` with the key of lock tokens, the same on all replicas; by default the store has the key")
}

func (c *config) tokenFlags(f *pflag.FlagSet) {
	f.StringVar(&c.secretFile, "jwt-secret-file", "",
		"`file` with the HS256 secret, at least 32 bytes; or "+envSecret)
	f.StringVar(&c.jwks, "jwks", "", "`URL or file` of the JWK Set (RS256, ES256, EdDSA)")
	f.StringVar(&c.issuer, "jwt-issuer", "", "`issuer` (iss) that bearer tokens must have")
	f.StringVar(&c.audience, "jwt-audience", "", "`audience` (aud) that bearer tokens must have")
	claimFlags(f, &c.claims)
}

// claimFlags are the flags for the claims that an identity provider puts into a token.
func claimFlags(f *pflag.FlagSet, names *auth.ClaimNames) {
	f.StringVar(&names.Tenant, "jwt-tenant-claim", "tenant",
		"`claim` with the tenant; a name or a URL")
	f.StringVar(&names.Scope, "jwt-scope-claim", "scope",
		"`claim` with the scopes, such as scope, scp, permissions or roles; a string or a list")
	f.StringVar(&names.ScopePrefix, "jwt-scope-prefix", "",
		"`text` before each scope; the server ignores scopes without it")
	f.StringVar(&names.Locks, "jwt-locks-claim", "locks",
		"`claim` with the patterns of lock names that the token is limited to")
}

func (c *config) signInFlags(f *pflag.FlagSet) {
	f.StringVar(&c.clientCA, "client-ca", "",
		"PEM `file` with the authorities of client certificates; read again each second")
	f.StringVar(&c.principals, "principals", "",
		"JSON `file` with the principals of client certificates; read again each second")
	f.Var(&c.oidc, oidcFlag,
		"identity provider for the dashboard, as `settings` of the form "+oidcExample)
}

func (c *config) limitFlags(f *pflag.FlagSet) {
	f.Var(&c.maxTTL, "max-ttl-seconds",
		fmt.Sprintf("longest lease of a client, in `seconds`; at most %g", lock.MaxTTL.Seconds()))
	c.limits = quota.Standard()
	f.Var(defaultQuotas{c.limits}, quotasFlag, "default quotas of a tenant: "+
		"`name=value,...`, such as held_locks=1000")
	f.Var(&c.auditRetention, "audit-retention",
		"how many `days` to retain audit records, such as 30d; at most 90d")
}

func (c *config) webhookFlags(f *pflag.FlagSet) {
	f.StringVar(&c.webhooks.Allow, "webhook-allow", "",
		"private address `ranges` for webhooks too, such as 10.0.0.0/8,127.0.0.1")
	f.BoolVar(&c.webhooks.AllowHTTP, "webhook-allow-http", false,
		"let webhooks use http URLs, and port 80")
	f.StringVar(&c.webhooks.Ports, "webhook-ports", "",
		"`ports` that webhooks may reach, or * for any; 443 unless set, and 80 with http")
}

func (c *config) logFlags(f *pflag.FlagSet) {
	f.StringVar(&c.logFormat, "log-format", "json", "json or text")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.Float64Var(&c.drainDelay, "drain-delay-seconds", 0,
		"keep listening for so many `seconds` after SIGTERM, until load balancers see /readyz fail")
	f.Var(&c.drain, "drain-seconds", "let requests finish for so many `seconds` after SIGTERM")
}
