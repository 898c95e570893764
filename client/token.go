package client

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/fencepost/fencepost/api"
)

// TokenSource has the bearer token of requests.
type TokenSource interface {
	// Token returns the token of the next request. It may have blanks around it. Its error is a
	// request without an answer: the client tries again.
	Token(ctx context.Context) (string, error)
}

// TokenFunc is a [TokenSource] that is called for each request.
type TokenFunc func(context.Context) (string, error)

// Token calls f.
func (f TokenFunc) Token(ctx context.Context) (string, error) { return f(ctx) }

// Bearer is a token that does not change. [New] checks it.
func Bearer(token string) TokenSource { return fixed(func() string { return token }) }

// fixed is a function, so that fmt does not print the token.
type fixed func() string

func (f fixed) Token(context.Context) (string, error) { return f(), nil }

// tokenOf trims a bearer token, and checks that a header can have it.
func tokenOf(text string) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" {
		return "", errors.New("the bearer token is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the bearer token has characters other than visible ASCII")
	}
	return token, nil
}

// checkHeader returns an error for a header that net/http refuses to send.
func checkHeader(header http.Header) error {
	for name, values := range header {
		if name == "" || strings.ContainsFunc(name, notInName) ||
			strings.ContainsFunc(strings.Join(values, ""), notInValue) {
			return invalid("a header of the request has characters that HTTP does not allow")
		}
	}
	return nil
}

func notInName(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func notInValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// invalid is the error of a call that cannot be sent. It is never repeated.
func invalid(detail string) *Error {
	e := newError(api.InvalidRequest, api.InvalidRequest.Title(), nil)
	e.Detail = detail
	return e
}
