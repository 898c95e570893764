package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// health asks a server whether it lives, by default the one on this machine: for
// images that have no curl.
func health(ctx context.Context, args []string, env environment, stdout io.Writer) error {
	var listen, address string
	f := newFlags("api health", stdout)
	f.StringVar(&listen, "listen", "127.0.0.1:8080", "`address` that the server on this machine serves on")
	f.StringVar(&address, "url", "", "`URL` to ask instead of /healthz there: http://127.0.0.1:8080/readyz")
	if _, err := parse(f, args, env); err != nil {
		return err
	}
	address, err := healthURL(address, listen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	_, err = fmt.Fprintf(stdout, "%s answers %s\n", address, resp.Status)
	return err
}

// healthURL is the URL that was given, else that of /healthz on this machine.
func healthURL(given, listen string) (string, error) {
	if given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return "", usagef("--url: %q is not http://host:port/path", given)
		}
		return given, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", usagef("--listen: %q is not host:port", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/healthz", nil
}
