package zookeeper_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestTLS reaches a server that lets in only who shows a certificate, and that is
// not believed without one of its own.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(t, filepath.Join(dir, "server.pem"))
	ca.write(t, filepath.Join(dir, "client.pem"))
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	z := startZooKeeper(t, rig.ZooKeeperConfig{Secure: true, Properties: []string{
		"zookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"zookeeper.ssl.keyStore.location=" + filepath.Join(dir, "server.pem"),
		"zookeeper.ssl.keyStore.type=PEM",
		"zookeeper.ssl.trustStore.location=" + filepath.Join(dir, "ca.pem"),
		"zookeeper.ssl.trustStore.type=PEM",
	}})
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.pem"))
	if err != nil {
		t.Fatal(err)
	}
	servers := []string{z.Server(0).SecureAddress()}
	s := openWarm(t, zookeeper.Config{
		Servers: servers, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}},
		Username: "fencepost", Password: "secret",
	})
	f := follow(t, s)
	first, second := enqueue(t, s, draft("a")), enqueue(t, s, draft("a"))
	if err := s.Renew(t.Context(), first); err != nil {
		t.Errorf("Renew: %v", err)
	}
	if err := s.Remove(t.Context(), first, lock.Released); err != nil {
		t.Errorf("Remove: %v", err)
	}
	within(
		t, 5*time.Second, "the feed tells who holds", func() bool { return f.first("a") == second.ID },
	)
	for name, c := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"plain text":     {nil, "it wants TLS or a certificate"},
		"no certificate": {&tls.Config{RootCAs: pool}, "it wants TLS or a certificate"},
		"an authority not trusted": {
			&tls.Config{Certificates: []tls.Certificate{own}}, "unknown authority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if s, err := zookeeper.Open(ctx, zookeeper.Config{Servers: servers, TLS: c.config}); err == nil {
				t.Errorf("it opens; close: %v", s.Close())
			} else if !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open: %v, want %q in it", err, c.want)
			}
		})
	}
}

// openWarm opens a store on a server that has just started. Its first handshakes take
// longer than a store waits for, on a busy machine: it loads all that it knows of TLS.
func openWarm(t *testing.T, cfg zookeeper.Config) (s *zookeeper.Store) {
	t.Helper()
	within(t, time.Minute, "a store opens", func() bool {
		opened, err := zookeeper.Open(t.Context(), cfg)
		if err != nil {
			t.Log(err)
			return false
		}
		s = opened
		return true
	})
	t.Cleanup(func() { closing(t, "a store", s.Close) })
	return s
}

// authority signs certificates for this machine.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// write makes a key and a certificate and puts both into a file.
func (a *authority) write(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "127.0.0.1"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	both := append(
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := os.WriteFile(path, both, 0o600); err != nil {
		t.Fatal(err)
	}
}
