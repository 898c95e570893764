package webhook_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// TestRequest is what a receiver sees of a delivery.
func TestRequest(t *testing.T) {
	type seen struct {
		Method, Host, URI, Proto, Body string
		Header                         http.Header
	}
	requests := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.Method, r.Host, r.RequestURI, r.Proto, string(body), r.Header}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	at := time.Unix(1614265330, 0)
	s := newSender(t, func(c *webhook.SenderConfig) { c.Now = func() time.Time { return at } })
	for range 2 { // the second has no cookie of the first
		r := s.Send(t.Context(), target(server.URL+"/hook/a%2Fb?x=1&y"), webhook.Message{
			ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Payload: []byte(`{"test": 2432232314}`),
		})
		if r.Outcome != webhook.Delivered || r.Status != http.StatusNoContent || r.Err != "" ||
			r.Cause != nil {
			t.Fatalf("%+v", r)
		}
		want := seen{
			"POST", strings.TrimPrefix(server.URL, "http://"), "/hook/a%2Fb?x=1&y", "HTTP/1.1",
			`{"test": 2432232314}`,
			http.Header{
				"Connection": {"close"}, "Content-Length": {"20"}, "Content-Type": {"application/json"},
				"User-Agent": {"Fencepost"},
				"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
				"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
			},
		}
		if diff := cmp.Diff(want, <-requests); diff != "" {
			t.Error(diff)
		}
	}
}

// TestStatuses: each status has its outcome and words.
func TestStatuses(t *testing.T) {
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	s := newSender(t, nil)
	for code, want := range map[int]webhook.Result{
		200: {Outcome: webhook.Delivered},
		204: {Outcome: webhook.Delivered},
		299: {Outcome: webhook.Delivered},
		301: {Outcome: webhook.Failed, Err: "it answered 301: redirects are not followed"},
		302: {Outcome: webhook.Failed, Err: "it answered 302: redirects are not followed"},
		307: {Outcome: webhook.Failed, Err: "it answered 307: redirects are not followed"},
		400: {Outcome: webhook.Failed, Err: "it answered 400"},
		404: {Outcome: webhook.Failed, Err: "it answered 404"},
		410: {Outcome: webhook.Gone, Err: "it answered 410: it wants nothing any more"},
		429: {Outcome: webhook.Throttled, Err: "it answered 429"},
		500: {Outcome: webhook.Failed, Err: "it answered 500"},
		502: {Outcome: webhook.Throttled, Err: "it answered 502"},
		503: {Outcome: webhook.Throttled, Err: "it answered 503"},
		504: {Outcome: webhook.Throttled, Err: "it answered 504"},
		505: {Outcome: webhook.Failed, Err: "it answered 505"},
	} {
		status.Store(int64(code))
		want.Status = code
		if want.Err != "" && code != 410 {
			want.RetryAfter = 7 * time.Second
		}
		got := send(t, s, server.URL)
		got.Took = 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s", code, diff)
		}
	}
}

// TestBadReceivers has every receiver of a bad day, and what its record says.
func TestBadReceivers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n\r\n"
	floods := make(chan int64, 10)
	flooding := func(head, text string) func(net.Conn) {
		return func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, head)
			floods <- flood(conn, text)
		}
	}
	kilobyte := strings.Repeat("x", 1<<10)
	for name, test := range map[string]struct {
		serve  func(net.Conn)
		status int
		err    string
		floods bool
	}{
		"closes at once": {serve: func(net.Conn) {}, err: "it closed the connection before it answered"},
		"closes after the request": {
			serve: readRequest, err: "it closed the connection before it answered",
		},
		"closes in the head": {
			serve: answering("HTTP/1.1 200 OK\r\nDate:"), err: "it closed the connection before it answered",
		},
		"closes in the body": {
			serve: answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), status: 200,
		},
		"answers without reading": {serve: func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
			hang(conn)
		}, status: 500, err: "it answered 500"},
		"is no HTTP": {
			serve: answering("SSH-2.0-OpenSSH_9.2\r\n"), err: "what it answered is not HTTP/1.1",
		},
		"speaks TLS to http": {
			serve: answering("\x15\x03\x01\x00\x02\x02\x16"), err: "what it answered is not HTTP/1.1",
		},
		"a status of four digits": {
			serve: answering("HTTP/1.1 2000 OK\r\n\r\n"), err: "what it answered is not HTTP/1.1",
		},
		"a status of no meaning": {
			serve: answering("HTTP/1.1 999 OK\r\n\r\n"), status: 999, err: "it answered 999",
		},
		"other protocol": {
			serve: answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), status: 101,
			err: "it answered 101",
		},
		"HTTP/2": {
			serve: answering("\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n"),
			err:   "what it answered is not HTTP/1.1",
		},
		"1xx first": {serve: answering("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + ok), status: 200},
		"two lengths": {
			serve: answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
			err:   "what it answered is not HTTP/1.1",
		},
		"1xx floods": {
			serve: flooding("", "HTTP/1.1 102 Processing\r\n\r\n"),
			err:   "the head of its answer has more than 16 KiB or 128 lines", floods: true,
		},
		"endless headers": {
			serve: flooding("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"),
			err:   "the head of its answer has more than 16 KiB or 128 lines", floods: true,
		},
		"too many headers": {
			serve: answering("HTTP/1.1 200 OK\r\n" + strings.Repeat("A:\r\n", 2000) + "\r\n"),
			err:   "the head of its answer has more than 16 KiB or 128 lines",
		},
		"many headers, many lines": {
			serve: answering(
				"HTTP/1.1 200 OK\r\n" + strings.Repeat("A:\r\n", 100) + "\r\n" + strings.Repeat("\n", 3000),
			),
			status: 200,
		},
		"an endless header": {
			serve: flooding("HTTP/1.1 200 OK\r\nX-A: ", kilobyte),
			err:   "the head of its answer has more than 16 KiB or 128 lines", floods: true,
		},
		"an endless status line": {
			serve: flooding("HTTP/1.1 200 ", kilobyte),
			err:   "the head of its answer has more than 16 KiB or 128 lines", floods: true,
		},
		"an endless body": {serve: flooding(ok, kilobyte), status: 200, floods: true},
		"10 MB": {
			serve: flooding("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n", kilobyte), status: 200,
			floods: true,
		},
		"endless chunks": {
			serve:  flooding("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
			status: 200, floods: true,
		},
		"endless trailers": {
			serve:  flooding("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-A: b\r\n"),
			status: 200, floods: true,
		},
		"a gzip bomb": {
			serve: flooding(
				"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
				"\x00",
			),
			status: 200, floods: true,
		},
		"an endless answer of a 500": {
			serve: flooding("HTTP/1.1 500 No\r\n\r\n", kilobyte), status: 500, err: "it answered 500",
			floods: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, "127.0.0.1:0", test.serve)
			got := send(t, newSender(t, nil), r.url)
			want := webhook.Failed
			if test.status == 200 {
				want = webhook.Delivered
			}
			if got.Outcome != want || got.Status != test.status || got.Err != test.err {
				t.Errorf("%+v", got)
			}
			if (got.Cause != nil) != (test.status == 0) {
				t.Errorf("the log is told %v", got.Cause)
			}
			if n := r.connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
			if test.floods { // what it could write before we hung up went no further than the kernel
				t.Logf("%d bytes were written", <-floods)
			}
		})
	}
}

// TestReadsNoMore counts what is read of an answer that never ends.
func TestReadsNoMore(t *testing.T) {
	for name, head := range map[string]string{
		"head": "HTTP/1.1 200 ", "body": "HTTP/1.1 200 OK\r\n\r\n",
		"chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
	} {
		ours, theirs := net.Pipe() // what is written was read
		s := newSender(t, nil)
		s.DialWith(func(context.Context, string, string) (net.Conn, error) { return ours, nil })
		written := make(chan int64)
		go func() {
			readRequest(theirs)
			n, _ := io.WriteString(theirs, head)
			written <- int64(n) + flood(theirs, strings.Repeat("x", 100))
		}()
		send(t, s, "http://127.0.0.1:80/")
		if n := <-written; n > 33<<10 {
			t.Errorf("%s: %d bytes were read", name, n)
		}
		theirs.Close()
	}
}

// TestSlowReceivers: 15 seconds in all, whatever they do, in virtual time.
func TestSlowReceivers(t *testing.T) {
	drip := func(head, text string) func(net.Conn) {
		return func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, head)
			for tick := time.NewTicker(time.Second); ; <-tick.C {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
			}
		}
	}
	for name, test := range map[string]struct {
		serve  func(net.Conn)
		url    string
		status int
		err    string
	}{
		"does not read": {doNotRead, "http://127.0.0.1:80/", 0, "it did not answer within 15s"},
		"does not answer": {
			func(c net.Conn) { readRequest(c); hang(c) }, "http://127.0.0.1:80/", 0,
			"it did not answer within 15s",
		},
		"drips its status": {drip("", "H"), "http://127.0.0.1:80/", 0, "it did not answer within 15s"},
		"drips 1xx": {
			drip("", "HTTP/1.1 102 Processing\r\n\r\n"), "http://127.0.0.1:80/", 0,
			"it did not answer within 15s",
		},
		"drips headers": {
			drip("HTTP/1.1 200 OK\r\n", "A: b\r\n"), "http://127.0.0.1:80/", 0,
			"it did not answer within 15s",
		},
		"drips its body": {drip("HTTP/1.1 200 OK\r\n\r\n", "a"), "http://127.0.0.1:80/", 200, ""},
		"drips another body": {
			drip("HTTP/1.1 500 No\r\n\r\n", "a"), "http://127.0.0.1:80/", 500, "it answered 500",
		},
		"hangs in TLS": {hang, "https://127.0.0.1/", 0, "it did not finish the TLS handshake within 15s"},
		"hangs before": {nil, "http://127.0.0.1:80/", 0, "no connection to it could be made within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				s := newSender(t, func(c *webhook.SenderConfig) { c.Timeout = 0 })
				s.DialWith(func(ctx context.Context, _, _ string) (net.Conn, error) {
					if test.serve == nil {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return ours, nil
				})
				var served sync.WaitGroup
				if test.serve != nil {
					served.Go(func() { test.serve(theirs) })
				}
				r := send(t, s, test.url)
				if r.Status != test.status || r.Err != test.err || r.Took != 15*time.Second {
					t.Errorf("%+v", r)
				}
				theirs.Close()
				served.Wait()
			})
		})
	}
}

// TestGoodbyeIsBounded: who reads no more does not hold us while TLS says goodbye.
func TestGoodbyeIsBounded(t *testing.T) {
	_, roots, certificate := newTLS(t, nil)
	bubble.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := newSender(t, func(c *webhook.SenderConfig) { c.RootCAs, c.Timeout = roots, 0 })
		s.DialWith(func(context.Context, string, string) (net.Conn, error) { return ours, nil })
		var served sync.WaitGroup
		served.Go(func() {
			readRequest(tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{certificate}}))
		})
		if r := send(
			t, s, "https://127.0.0.1/",
		); r.Took != 15*time.Second || r.Err != "it did not answer within 15s" {
			t.Errorf("%+v", r)
		}
		theirs.Close()
		served.Wait()
	})
}

// doNotRead reads nothing until the other end has long gone.
func doNotRead(net.Conn) { <-time.After(time.Minute) }

func TestNobodyThere(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	listener.Close()
	if got := send(
		t, newSender(t, nil), "http://"+address,
	); got.Outcome != webhook.Failed || got.Err != "it refused the connection" {
		t.Errorf("%+v", got)
	}
}

// TestInterrupted: an attempt that its sender gives up is no fault of the receiver.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRaw(t, "127.0.0.1:0", func(conn net.Conn) {
		cancel()
		hang(conn)
	})
	got := newSender(t, nil).Send(ctx, target(r.url), webhook.Message{ID: "1-0"})
	if got.Outcome != webhook.Interrupted || got.Err != "the attempt was interrupted by the sender" {
		t.Errorf("%+v", got)
	}
}

// TestNotSent: what may not be sent makes no connection.
func TestNotSent(t *testing.T) {
	r := newRaw(t, "127.0.0.1:0", readRequest)
	now := time.Unix(1700000000, 0)
	s := newSender(t, func(c *webhook.SenderConfig) { c.Now = func() time.Time { return now } })
	good := webhook.Message{ID: "1-0", Payload: []byte("{}")}
	for name, test := range map[string]struct {
		target  webhook.Target
		message webhook.Message
		want    webhook.Outcome
	}{
		"no URL":    {target(""), good, webhook.Rejected},
		"bad URL":   {target("http://169.254.169.254/"), good, webhook.Rejected},
		"no secret": {webhook.Target{URL: r.url}, good, webhook.Rejected},
		"zero secret": {
			webhook.Target{URL: r.url, Secrets: make([]webhook.Secret, 1)}, good, webhook.Rejected,
		},
		"no id": {target(r.url), webhook.Message{Payload: []byte("{}")}, webhook.Rejected},
		"large": {
			target(r.url),
			webhook.Message{ID: "1-0", Payload: make([]byte, webhook.MaxPayload+1)},
			webhook.Rejected,
		},
		"too late": {target(r.url), webhook.Message{ID: "1-0", NotAfter: now}, webhook.Expired},
		"far too late": {
			target(r.url), webhook.Message{ID: "1-0", NotAfter: now.Add(-time.Hour)}, webhook.Expired,
		},
	} {
		got := s.Send(t.Context(), test.target, test.message)
		if got.Outcome != test.want || got.Err == "" || got.Status != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := r.connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	large := webhook.Message{
		ID: "1-0", Payload: make([]byte, webhook.MaxPayload), NotAfter: now.Add(time.Second),
	}
	if got := s.Send(
		t.Context(), target(r.url), large,
	); got.Outcome != webhook.Failed || r.connections.Load() != 1 {
		t.Errorf("the largest payload, just in time: %+v", got)
	}
}

// TestTooLateOnceConnected: connecting can take longer than a message is of use.
func TestTooLateOnceConnected(t *testing.T) {
	now := time.Unix(1700000000, 0)
	ours, theirs := net.Pipe()
	s := newSender(t, func(c *webhook.SenderConfig) {
		c.Now, c.Timeout = func() time.Time { return now }, 5*time.Second
	})
	s.DialWith(func(context.Context, string, string) (net.Conn, error) {
		now = now.Add(10 * time.Second)
		return ours, nil
	})
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, theirs)
		read <- n
	}()
	got := s.Send(
		t.Context(), target("http://127.0.0.1:80/"),
		webhook.Message{ID: "1-0", NotAfter: now.Add(10 * time.Second)},
	)
	if n := <-read; n != 0 || got.Outcome != webhook.Expired || got.Took != 10*time.Second {
		t.Errorf("%d bytes were sent: %+v", n, got)
	}
	theirs.Close()
}

// TestDateSkew: a result reports a receiver's clock that is off by more than a minute.
func TestDateSkew(t *testing.T) {
	now := time.Unix(1700000000, 0).UTC()
	s := newSender(t, func(c *webhook.SenderConfig) { c.Now = func() time.Time { return now } })
	for date, want := range map[string]time.Duration{
		"":                          0,
		"yesterday":                 0,
		now.Format(http.TimeFormat): 0,
		now.Add(60 * time.Second).Format(http.TimeFormat): 0,
		now.Add(61 * time.Second).Format(http.TimeFormat): 61 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       -time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT":                   time.Duration(1<<63 - 1).Truncate(time.Second),
	} {
		r := newRaw(t, "127.0.0.1:0", answering("HTTP/1.1 204 No Content\r\nDate: "+date+"\r\n\r\n"))
		if got := send(t, s, r.url); got.DateSkew != want || got.Outcome != webhook.Delivered {
			t.Errorf("%q: %s", date, got.DateSkew)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Unix(1700000000, 0).UTC()
	s := newSender(t, func(c *webhook.SenderConfig) { c.Now = func() time.Time { return now } })
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for head, want := range map[string]time.Duration{
		"": 0, "Retry-After: 0": 0, "Retry-After: 120": 2 * time.Minute,
		"Retry-After:  5 ": 5 * time.Second, "Retry-After: -5": 0,
		"Retry-After: 1.5": 0, "Retry-After: soon": 0, "Retry-After: 86400": 24 * time.Hour,
		"Retry-After: 86401":                24 * time.Hour,
		"Retry-After: 99999999999999999999": 24 * time.Hour,
		"Retry-After: 9223372036854775807":  24 * time.Hour,
		"Retry-After: " + in(time.Minute):   time.Minute, "Retry-After: " + in(-time.Minute): 0,
		"Retry-After: " + in(48*time.Hour):                                          24 * time.Hour,
		"Date: " + in(time.Hour) + "\r\nRetry-After: " + in(time.Hour+time.Minute):  time.Minute,
		"Date: " + in(-time.Hour) + "\r\nRetry-After: " + in(time.Minute-time.Hour): time.Minute,
	} {
		r := newRaw(t, "127.0.0.1:0", answering(strings.TrimSpace("HTTP/1.1 503 No\r\n"+head)+"\r\n\r\n"))
		if got := send(t, s, r.url); got.RetryAfter != want || got.Outcome != webhook.Throttled {
			t.Errorf("%q: %s", head, got.RetryAfter)
		}
	}
}

func TestTLS(t *testing.T) {
	good, roots, _ := newTLS(t, nil)
	old, oldRoots, _ := newTLS(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	})
	oneTwo, oneTwoRoots, _ := newTLS(
		t, func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12} },
	)
	h2, h2Roots, _ := newTLS(t, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 1 {
				w.WriteHeader(http.StatusTeapot)
			}
		})
	})
	_, _, certificate := newTLS(t, nil)
	for range 150 {
		certificate.Certificate = append(certificate.Certificate, certificate.Certificate[0])
	}
	long := newRaw(t, "127.0.0.1:0", func(conn net.Conn) {
		readRequest(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	})
	plain := newRaw(t, "127.0.0.1:0", answering("HTTP/1.1 400 Bad\r\n\r\n"))
	closes := newRaw(t, "127.0.0.1:0", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	secure := func(r *raw) string { return "https" + strings.TrimPrefix(r.url, "http") }
	here := newNameServer(t, func(int) ([]net.IP, byte) { return []net.IP{net.IPv4(127, 0, 0, 1)}, 0 })
	named := func(url, name string) string { return strings.Replace(url, "127.0.0.1", name, 1) }
	for name, test := range map[string]struct {
		url    string
		change func(*webhook.SenderConfig)
		err    string
	}{
		"good": {good, func(c *webhook.SenderConfig) { c.RootCAs = roots }, ""},
		"good by name": {
			named(good, "example.com"),
			func(c *webhook.SenderConfig) { c.RootCAs, c.DialNameServer = roots, here }, "",
		},
		"TLS 1.2":  {oneTwo, func(c *webhook.SenderConfig) { c.RootCAs = oneTwoRoots }, ""},
		"HTTP/2":   {h2, func(c *webhook.SenderConfig) { c.RootCAs = h2Roots }, ""},
		"nobody's": {good, nil, "its certificate is signed by an authority that is not trusted here"},
		"another host's": {
			named(good, "other.example"),
			func(c *webhook.SenderConfig) { c.RootCAs, c.DialNameServer = roots, here },
			"its certificate is for another host",
		},
		"expired": {good, func(c *webhook.SenderConfig) {
			c.RootCAs, c.Now = roots, func() time.Time { return time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC) }
		}, "its certificate has expired or is not valid yet"},
		"TLS 1.1": {
			old, func(c *webhook.SenderConfig) { c.RootCAs = oldRoots },
			"it does not speak TLS 1.2 or later",
		},
		"a long chain": {
			secure(long), func(c *webhook.SenderConfig) { c.RootCAs = roots },
			"it sends more than 64 KiB for a TLS handshake",
		},
		"no TLS": {secure(plain), nil, "it does not speak TLS"},
		"closes": {secure(closes), nil, "it closed the connection during the TLS handshake"},
	} {
		got := send(t, newSender(t, test.change), test.url)
		if got.Err != test.err || (got.Outcome == webhook.Delivered) != (test.err == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
