package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// health asks a server whether it lives, by default the one on this machine: for
// images that have no curl.
func health(ctx context.Context, args []string, env environment, stdout io.Writer) error {
	var listen, address, cert string
	f := newCommandFlags("api health", stdout)
	f.StringVar(
		&listen, "listen", "127.0.0.1:8080", "`address` that the server on this machine serves on",
	)
	f.StringVar(
		&address, "url", "", "`URL` to ask instead of /healthz there: http://127.0.0.1:8080/readyz",
	)
	f.StringVar(
		&cert, "tls-cert", "",
		"`file` with the certificate of the server on this machine: that it speaks TLS. Whose certificate it shows is not checked",
	)
	if _, err := parse(f, args, env); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	scheme := "http"
	if cert != "" && address == "" {
		scheme = "https"
		client.Transport = unverified()
	}
	address, err := healthURL(scheme, address, listen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", asked(req.URL), failed.Err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s%s", asked(req.URL), resp.Status, said(resp.Body))
	}
	_, err = fmt.Fprintf(stdout, "%s answers %s\n", asked(req.URL), resp.Status)
	return err
}

// asked is the URL without its query, which may be a secret.
func asked(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// said is what an answer says, in one line, for the end of a sentence.
func said(body io.Reader) string {
	const most = 500 // bytes
	text, err := io.ReadAll(io.LimitReader(body, most))
	if words := strings.Fields(strings.ToValidUTF8(string(text), "")); err == nil && len(words) > 0 {
		return ": " + strings.Join(words, " ")
	}
	return ""
}

// unverified asks the server on this machine, which has a certificate for another name and may
// have kept one that is not in its file any more. Nothing secret is sent, and who could answer
// in its place could be asked by any name.
func unverified() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // for the reasons above
	}
}

// healthURL is the URL that was given, else that of /healthz on this machine.
func healthURL(scheme, given, listen string) (string, error) {
	if given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return "", usagef("--url: it is not http://host:port/path")
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
	return scheme + "://" + net.JoinHostPort(host, port) + "/healthz", nil
}
