package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// step is how far an attempt came.
type step int

const (
	connecting step = iota
	securing
	exchanging
)

// stepError is why an attempt ended without an answer.
type stepError struct {
	step step
	err  error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// failed says what came of an attempt that ended without an answer. The library's own
// words are for the log: they have addresses, and what the receiver sent.
func (s *Sender) failed(caller, attempt context.Context, err error) Result {
	if caller.Err() != nil {
		return Result{Outcome: Interrupted, Err: "the attempt was interrupted by the sender", Cause: err}
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return Result{
			Outcome: Rejected, Err: "its host name leads to an address that this server does not send to",
			Cause: refused,
		}
	}
	var e *stepError
	errors.As(err, &e)
	text := ""
	switch {
	case attempt.Err() != nil:
		text = explainTimeout(e.step) + " within " + s.timeout.String()
	case e.step == connecting:
		text = explainConnecting(err)
	case e.step == securing:
		text = explainSecuring(err)
	default:
		text = explainExchange(err)
	}
	return Result{Outcome: Failed, Err: text, Cause: err}
}

func explainTimeout(s step) string {
	switch s {
	case connecting:
		return "no connection to it could be made"
	case securing:
		return "it did not finish the TLS handshake"
	}
	return "it did not answer"
}

func explainConnecting(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "its host name does not resolve"
		}
		return "its host name could not be resolved: the name server did not answer as it should"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "it refused the connection"
	}
	return "no connection to it could be made"
}

func explainSecuring(err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &name):
		return "its certificate is for another host"
	case errors.As(err, &authority):
		return "its certificate is signed by an authority that is not trusted here"
	case errors.As(err, &verification):
		return "its certificate is not valid"
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.Is(err, errLongHandshake):
		return "it sends more than 64 KiB for a TLS handshake"
	case hungUp(err):
		return "it closed the connection during the TLS handshake"
	case strings.Contains(err.Error(), "protocol version"):
		return "it does not speak TLS 1.2 or later"
	}
	return "the TLS handshake with it failed"
}

func explainExchange(err error) string {
	switch {
	case errors.Is(err, errLongHead):
		return "the head of its answer has more than 16 KiB or 128 lines"
	case hungUp(err):
		return "it closed the connection before it answered"
	}
	return "what it answered is not HTTP/1.1"
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
