package row

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// frontWays are those of a client that has no token.
func frontWays() []hostileWay {
	ways := make([]hostileWay, 0, 4)
	for _, n := range []int{64, 16} {
		ways = append(ways, hostileWay{
			name:   fmt.Sprintf("%d connections without a token that pipeline", n),
			atOnce: n, alone: true, attack: pipeline,
		})
	}
	return ways
}

// pipeline sends requests without a token on one connection, without waiting for an answer, until
// it is cut off.
func pipeline(ctx context.Context, a *attack, i, _ int) {
	path := []string{"/healthz", "/nowhere", "/locks/a"}[i%3]
	host := strings.TrimPrefix(a.base, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	many := strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 200)
	for err == nil {
		_, err = io.WriteString(conn, many)
	}
}
