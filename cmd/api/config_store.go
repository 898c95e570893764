package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// resolveStore turns --store and its companions into endpoints and TLS.
func (c *config) resolveStore(set origins) error {
	var wrong []error
	if c.dataDir == "" && (c.dev || c.store == storeEmbedded) {
		wrong = append(
			wrong,
			usagef("--data-dir is empty: name the folder for the embedded store and the development secret"),
		)
	}
	if c.store == storeEmbedded {
		c.backend = storeEmbedded
		for _, name := range []string{
			"store-ca", "store-cert", "store-key", "store-username", "store-password-file",
		} {
			if set.of(name) != byDefault {
				wrong = append(wrong, usagef("--%s contradicts --store embedded, which listens nowhere", name))
			}
		}
		return errors.Join(wrong...)
	}
	// Only on the command line: an image sets them for whatever store it will be.
	for _, name := range []string{"data-dir", "data-quota-mb"} {
		if set.of(name) == byFlag && !(c.dev && name == "data-dir") {
			wrong = append(wrong, usagef("--%s contradicts --store: only the embedded store has one", name))
		}
	}
	return errors.Join(append(wrong, c.resolveEndpoints(), c.resolveStoreAccess())...)
}

// resolveEndpoints takes the address of an external store apart. Only ZooKeeper's
// has a path.
func (c *config) resolveEndpoints() error {
	scheme, rest, hasHosts := strings.Cut(c.store, "://")
	hosts, path, _ := strings.Cut(rest, "/")
	switch {
	case strings.Contains(hosts, "@"), !hasHosts && strings.Contains(scheme, "@"):
		return usagef(
			"--store: credentials do not belong into an address: there are --store-username and --store-password-file",
		)
	case hasHosts && scheme == storeEtcd && path == "":
	case hasHosts && scheme == storeZooKeeper:
		if path != "" {
			c.chroot = "/" + path
		}
	default:
		return usagef(
			"--store: %q is neither embedded nor etcd://host:port,host:port nor zookeeper://host:port,host:port/chroot",
			withoutCredentials(c.store),
		)
	}
	c.backend = scheme
	for h := range strings.SplitSeq(hosts, ",") {
		if !isEndpoint(h) {
			return usagef("--store: %q is not host:port, with a port from 1 to 65535", h)
		}
		c.endpoints = append(c.endpoints, h)
	}
	return c.checkChroot()
}

func isEndpoint(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// checkChroot refuses paths that ZooKeeper cannot have, and those that it could but
// that show a mistake: the server takes them as they stand.
func (c *config) checkChroot() error {
	if c.chroot == "" {
		return nil
	}
	for part := range strings.SplitSeq(c.chroot[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return usagef(
				"--store: %q is not a path in ZooKeeper: it has an empty part, as before a slash at its end, or . or ..",
				c.chroot,
			)
		}
	}
	for _, r := range c.chroot {
		if strings.ContainsRune(`?#%,\`, r) || r == ' ' || !unicode.IsPrint(r) {
			return usagef(
				"--store: %q is not a path in ZooKeeper that we take: it has %q in it, and nothing in it is read as a query, an escape or another host",
				c.chroot, string(r),
			)
		}
	}
	return nil
}

// resolveStoreAccess finds what the store is shown, and what it has to show.
func (c *config) resolveStoreAccess() error {
	var wrong []error
	if (c.storeUsername == "") != (c.storePasswordSrc == "") {
		wrong = append(wrong, usagef("--store-username and --store-password-file need each other"))
	}
	if c.backend == storeZooKeeper && strings.Contains(c.storeUsername, ":") {
		wrong = append(wrong, usagef(
			"--store-username: %q has a colon, with which ZooKeeper begins the password", c.storeUsername,
		))
	}
	if c.storePasswordSrc != "" {
		pass, err := readSecret("--store-password-file", c.storePasswordSrc, 1)
		c.storePass, wrong = string(pass), append(wrong, err)
	}
	return errors.Join(append(wrong, c.resolveStoreTLS())...)
}

// systemAuthorities is the --store-ca that stands for those of the system.
const systemAuthorities = "system"

func (c *config) resolveStoreTLS() error {
	if c.storeCA == "" && c.storeCert == "" && c.storeKey == "" {
		return nil
	}
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	var wrong []error
	if c.storeCA != "" && c.storeCA != systemAuthorities {
		pool, err := readAuthorities("--store-ca", c.storeCA)
		c.tls.RootCAs, wrong = pool, append(wrong, err)
	}
	switch {
	case (c.storeCert == "") != (c.storeKey == ""):
		wrong = append(wrong, usagef("--store-cert and --store-key need each other"))
	case c.storeCert != "":
		pair, err := tls.LoadX509KeyPair(c.storeCert, c.storeKey)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--store-cert and --store-key: %w", err))
		}
		c.tls.Certificates = []tls.Certificate{pair}
	}
	return errors.Join(wrong...)
}

// readAuthorities reads the certificates of authorities.
func readAuthorities(flagName, path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagName, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in it", flagName, path)
	}
	return pool, nil
}
