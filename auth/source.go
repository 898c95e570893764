package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	maxKeySetSize = 1 << 20 // bytes
	fetchTimeout  = 5 * time.Second
	maxRedirects  = 5

	defaultURLRefresh  = 5 * time.Minute
	defaultFileRefresh = time.Second
)

// source is where a key set comes from.
type source interface {
	// read returns the document as it is now, within ctx. Errors carry neither
	// credentials nor the document.
	read(ctx context.Context) ([]byte, error)

	// every is how often it is read again by default.
	every() time.Duration
}

func newSource(location string) (source, error) {
	if strings.Contains(location, "://") {
		return newURLSource(location)
	}
	return fileSource(location), nil
}

// fileSource is read whole each time rather than only when its time or size
// changes: that is one page of cached memory, and it misses no edit.
type fileSource string

func (f fileSource) every() time.Duration { return defaultFileRefresh }

func (f fileSource) read(context.Context) ([]byte, error) {
	// Opening a pipe would block, and it cannot be read a second time.
	info, err := os.Stat(string(f))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", string(f))
	}
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	document, err := readBounded(file)
	return document, errors.Join(err, file.Close())
}

type urlSource struct {
	url    string
	client *http.Client
}

func newURLSource(location string) (*urlSource, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DisableKeepAlives:      true, // minutes pass between two reads
		MaxResponseHeaderBytes: 64 << 10,
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	return &urlSource{url: location, client: client}, nil
}

// checkURL accepts https, and http on this machine, where no other machine can replace the keys
// in the answer.
func checkURL(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.User != nil:
		return errors.New("credentials in a URL end up in logs")
	case u.Scheme == "https" && u.Hostname() != "":
		return nil
	case u.Scheme == "http" && ip != nil && ip.IsLoopback():
		return nil
	}
	return errors.New("must be an https URL, http on a loopback address, or a file")
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if next.URL.Scheme != via[0].URL.Scheme {
		return errors.New("a redirect to another scheme")
	}
	if err := checkURL(next.URL); err != nil {
		return fmt.Errorf("a redirect: %w", err)
	}
	return nil
}

func (s *urlSource) every() time.Duration { return defaultURLRefresh }

func (s *urlSource) read(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("the server answered with status %d", response.StatusCode)
		return nil, errors.Join(err, response.Body.Close())
	}
	document, err := readBounded(response.Body)
	return document, errors.Join(withoutURL(err), response.Body.Close())
}

// withoutURL drops the URL that net/http puts into its errors: a query may
// hold a key.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// withoutMark leaves out the byte order mark that some editors put first (RFC 8259,
// section 8.1, lets a parser skip it).
func withoutMark(document []byte) []byte { return bytes.TrimPrefix(document, []byte("\ufeff")) }

func readBounded(r io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(r, maxKeySetSize+1))
	if err != nil {
		return nil, err
	}
	if len(document) > maxKeySetSize {
		return nil, fmt.Errorf("longer than %d bytes", maxKeySetSize)
	}
	return document, nil
}
