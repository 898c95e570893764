package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/auth"
)

const (
	devSecretFile = "dev-jwt-secret"
	devTokenFile  = "dev-token"
	devTokenTTL   = 30 * 24 * time.Hour
)

// printToken prints a bearer token signed with the configured HS256 secret.
func printToken(args []string, env environment, stdout io.Writer) error {
	var tenant, scope, subject, locks, secretFile, dataDir, issuer, audience string
	var names auth.ClaimNames
	var ttl time.Duration
	var dev bool
	f := newCommandFlags("api token", stdout)
	f.StringVar(&tenant, "tenant", "", "tenant of the token (required)")
	f.StringVar(&scope, "scope", "locks:read locks:write", "scopes, separated by spaces")
	f.StringVar(&subject, "subject", "cli", "who the token is for")
	f.StringVar(
		&locks, "locks", "", "name patterns that the token is limited to, separated by commas: orders:*",
	)
	f.DurationVar(&ttl, "ttl", time.Hour, "for how long the token is good")
	f.StringVar(&secretFile, "jwt-secret-file", "", "`file` with the HS256 secret")
	f.StringVar(&issuer, "jwt-issuer", "", "issuer to put in")
	f.StringVar(&audience, "jwt-audience", "", "audience to put in")
	claimFlags(f, &names)
	f.BoolVar(&dev, "dev", false, "use the secret that --dev made in the data folder")
	f.StringVar(&dataDir, "data-dir", "./data", "`folder` of that secret")
	if _, err := parse(f, args, env); err != nil {
		return err
	}
	secret, err := signingSecret(env, secretFile, dev, dataDir)
	if err != nil {
		return err
	}
	claims := auth.Claims{
		Tenant: tenant, Subject: subject, Issuer: issuer, Audience: audience, Names: names,
	}
	for _, s := range strings.Fields(scope) {
		claims.Scopes = append(claims.Scopes, auth.Scope(s))
	}
	if locks != "" {
		claims.Locks = strings.Split(locks, ",")
	}
	token, err := auth.Sign(secret, claims, time.Now(), ttl)
	if err != nil {
		return usagef("%v", err)
	}
	_, err = fmt.Fprintln(stdout, token)
	return err
}

func signingSecret(env environment, secretFile string, dev bool, dataDir string) ([]byte, error) {
	if secretFile != "" {
		return readSecret("--jwt-secret-file", secretFile, minSecret)
	}
	if inline, err := inlineSecret(env); inline != nil || err != nil {
		return inline, err
	}
	if dev {
		return readOwn(filepath.Join(dataDir, devSecretFile))
	}
	return nil, usagef(
		"no secret to sign with: set --jwt-secret-file or %s, or --dev for a development server's",
		envSecret,
	)
}

// devSecret returns the secret of a development server, made on first use. The files that we made
// are closed to others if they were not.
func (c *config) devSecret() ([]byte, error) {
	path := filepath.Join(c.dataDir, devSecretFile)
	c.closeToOthers(path)
	c.closeToOthers(filepath.Join(c.dataDir, devTokenFile))
	info, err := os.Stat(c.dataDir)
	if err == nil && info.Mode().Perm()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		c.warn(
			"other users of this machine may remove the files in --data-dir %s (mode %04o)", c.dataDir,
			info.Mode().Perm(),
		)
	}
	secret, err := readOwn(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := os.MkdirAll(c.dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	secret = []byte(base64.RawURLEncoding.EncodeToString(raw))
	return secret, writeOwn(path, string(secret)+"\n")
}

// readOwn reads the development secret that this user's server made. Others may put files of theirs
// into a folder that they can write to.
func readOwn(path string) ([]byte, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notOwn(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|asItIs, 0)
	if err != nil {
		return nil, fmt.Errorf("--dev, in --data-dir: %w", err)
	}
	info, failed := f.Stat()
	text, err := io.ReadAll(f)
	if err := errors.Join(failed, err, f.Close()); err != nil {
		return nil, fmt.Errorf("--dev, in --data-dir: %w", err)
	}
	if !info.Mode().IsRegular() || !isOurs(info) {
		return nil, notOwn(path)
	}
	return checkSecret("--dev", path, text, minSecret)
}

// writeOwn writes a new file that only this user can read, in place of the one that its server
// made.
func writeOwn(path, text string) error {
	if info, err := os.Lstat(path); err == nil {
		if !info.Mode().IsRegular() || !isOurs(info) {
			return notOwn(path)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("--dev, in --data-dir: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|asItIs, 0o600)
	if err != nil {
		return fmt.Errorf("--dev, in --data-dir: %w", err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func notOwn(path string) error {
	return fmt.Errorf(
		"--dev, in --data-dir: %s is not a file of this user's own: remove it, or name another file or folder by --data-dir",
		path,
	)
}

// closeToOthers takes access to a file of ours from other users. It warns about what it
// cannot change.
func (c *config) closeToOthers(path string) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || !isOurs(info) || info.Mode().Perm()&forNotOurs == 0 {
		return
	}
	was := info.Mode().Perm()
	if err := os.Chmod(path, was&^forNotOurs); err != nil {
		c.warn(
			"other users of this machine may read %s (mode %04o), and that cannot be changed: %v", path, was,
			err,
		)
		return
	}
	c.warn(
		"other users of this machine could read %s (mode %04o); now they cannot, but may have", path, was,
	)
}

// greetDeveloper leaves a ready bearer token in the data folder and prints how
// to use it, with a link that signs in at the dashboard once. The code of the link is in its
// fragment, which browsers never send.
func (c *config) greetDeveloper(
	ctx context.Context, stdout io.Writer, address net.Addr, codes *auth.Codes,
	verifier *auth.Verifier,
) error {
	claims := auth.Claims{
		Tenant: "demo", Subject: "developer", Issuer: c.issuer, Audience: c.audience, Names: c.claims,
		Scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite, auth.WebhooksWrite, auth.Admin},
	}
	token, err := auth.Sign(c.secret, claims, time.Now(), devTokenTTL)
	if err != nil {
		return err
	}
	path := filepath.Join(c.dataDir, devTokenFile)
	if err := writeOwn(path, token+"\n"); err != nil {
		return err
	}
	who, err := verifier.Verify(ctx, token) // so that a session by the code ends with the secret
	if err != nil {
		return err
	}
	code := codes.Issue(who)
	// Without a reader of stdout the token is in the file.
	_, _ = fmt.Fprintf(stdout, `
Fencepost is ready at %[5]s://%[1]s (development: do not expose it)

  export FENCEPOST_URL=%[5]s://%[1]s
  export FENCEPOST_TOKEN=%[2]s

  curl -X POST $FENCEPOST_URL/locks/orders:42 -H "Authorization: Bearer $FENCEPOST_TOKEN"

The token is for the tenant "demo" and is also in %[3]s.
The interface is described at %[5]s://%[1]s/docs/

  The dashboard: %[5]s://%[1]s/dashboard/#code=%[4]s

The link signs in once, within 5 minutes; after that the token does.

`, reachable(address)+c.basePath, token, path, code, c.scheme())
	return nil
}

// reachable is the address for clients on this machine of a server that may listen on all.
func reachable(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return address.String()
}
