// Package settings finds the server and the bearer token: by flags, the environment, or a context
// of the configuration file, in this order.
package settings

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/client"
)

// Settings are the flags of all commands.
type Settings struct {
	url, token, tokenFile, caFile, context string
}

// Bind adds the flags.
func (s *Settings) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&s.url, "url", "",
		"base `URL` of the server, or several with commas in between ($FENCEPOST_URL)")
	flags.StringVar(&s.token, "token", "",
		"bearer `token`; other users of the machine may see arguments ($FENCEPOST_TOKEN)")
	flags.StringVar(&s.tokenFile, "token-file", "",
		"`file` with the bearer token, which is read for each request ($FENCEPOST_TOKEN_FILE)")
	flags.StringVar(&s.caFile, "ca-file", "",
		"PEM `file` of the authorities that may sign the server's certificate ($FENCEPOST_CA_FILE)")
	flags.StringVar(&s.context, "context", "",
		"`name` of a context of the configuration file ($FENCEPOST_CONTEXT)")
}

// Server is the server that the settings name.
type Server struct {
	Context
	// Name of the context, if one is used.
	Name string
}

// ErrNoServer means that nothing names a server.
var ErrNoServer = errors.New(
	"no server is set: use --url, FENCEPOST_URL, or fencepost login --url URL",
)

// ErrServer means that the server's URL is not a base URL.
var ErrServer = errors.New("the server's URL is not valid")

// ErrToken means that there is no bearer token, or that its file cannot be read.
var ErrToken = errors.New("no token")

// Server resolves the settings. The token of a context is only used with that context's URL.
func (s *Settings) Server() (Server, error) {
	file, err := Load()
	if err != nil {
		return Server{}, err
	}
	name := cmp.Or(s.context, os.Getenv("FENCEPOST_CONTEXT"), file.Current)
	saved, known := file.Contexts[name]
	if name != "" && !known {
		return Server{}, fmt.Errorf("the configuration file has no context %q", name)
	}
	flags := Context{URL: s.url, Token: s.token, TokenFile: s.tokenFile, CAFile: s.caFile}
	environment := Context{
		URL: os.Getenv("FENCEPOST_URL"), Token: os.Getenv("FENCEPOST_TOKEN"),
		TokenFile: os.Getenv("FENCEPOST_TOKEN_FILE"), CAFile: os.Getenv("FENCEPOST_CA_FILE"),
	}
	if s.context != "" && s.url == "" { // a flag goes before the environment
		return Server{flags.or(saved), name}, nil
	}
	used := flags.or(environment)
	if used.URL == "" || used.URL == saved.URL {
		return Server{used.or(saved), name}, nil
	}
	return Server{used, ""}, nil
}

// or fills the empty fields of c from other.
func (c Context) or(other Context) Context {
	if c.Token == "" && c.TokenFile == "" {
		c.Token, c.TokenFile = other.Token, other.TokenFile
	}
	c.URL, c.CAFile = cmp.Or(c.URL, other.URL), cmp.Or(c.CAFile, other.CAFile)
	c.Issuer, c.ClientID = cmp.Or(c.Issuer, other.Issuer), cmp.Or(c.ClientID, other.ClientID)
	return c
}

// Target returns a context for a new sign-in: the flags, and the other fields of saved.
func (s *Settings) Target(saved Context) (Context, error) {
	target := Context{
		URL:    cmp.Or(s.url, saved.URL, os.Getenv("FENCEPOST_URL")),
		CAFile: cmp.Or(s.caFile, saved.CAFile, os.Getenv("FENCEPOST_CA_FILE")),
		Issuer: saved.Issuer, ClientID: saved.ClientID,
	}
	if target.URL == "" {
		return target, ErrNoServer
	}
	return target, nil
}

// Client returns a client of the server. It sends no request.
func (s *Settings) Client(retryFor time.Duration) (*client.Client, error) {
	server, err := s.Server()
	if err != nil {
		return nil, err
	}
	return server.Client(retryFor)
}

// Client returns a client of the server. It sends no request.
func (c Context) Client(retryFor time.Duration) (*client.Client, error) {
	if c.URL == "" {
		return nil, ErrNoServer
	}
	if _, err := c.Bearer(context.Background()); err != nil {
		return nil, err
	}
	transport, err := c.HTTP()
	if err != nil {
		return nil, err
	}
	made, err := client.New(client.Config{
		URLs: c.URLs(), Token: client.TokenFunc(c.Bearer), HTTP: transport, RetryFor: retryFor,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), // commands say what happens
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrServer, err)
	}
	return made, nil
}

// URLs of the replicas.
func (c Context) URLs() []string { return strings.Split(c.URL, ",") }

// Bearer returns the bearer token of the next request, or [ErrToken].
func (c Context) Bearer(context.Context) (string, error) {
	token := c.Token
	if token == "" && c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrToken, err)
		}
		token = strings.TrimSpace(string(text))
	}
	if token == "" {
		return "", fmt.Errorf("%w: use --token-file, FENCEPOST_TOKEN, or fencepost login", ErrToken)
	}
	return token, nil
}

// HTTP returns what sends requests; nil is the default of the client.
func (c Context) HTTP() (*http.Client, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", c.CAFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}
