package main

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/service"
)

// resolveKeys finds the keys for bearer and lock tokens. Without --dev there is
// no default: a server with a known secret would be worse than none.
func (c *config) resolveKeys(env environment) error {
	err := c.resolveSecret(env)
	if wrong := c.claims.Check(); wrong != nil {
		err = errors.Join(err, usagef("%v", wrong))
	}
	if c.jwks != "" && (c.issuer == "" || c.audience == "") {
		c.warn(
			"--jwks without --jwt-issuer and --jwt-audience: a token that was made for another service with one of these keys is taken too",
		)
	}
	if c.jwks != "" {
		if failed := auth.CheckKeySet(c.jwks); failed != nil {
			err = errors.Join(err, fmt.Errorf("--jwks: %w", failed))
		}
	}
	if c.tokenKeyFile != "" {
		var failed error
		c.tokenKey, failed = readSecret("--token-key-file", c.tokenKeyFile, service.MinTokenKey)
		err = errors.Join(err, failed)
	}
	return err
}

// deploymentKey returns the key behind lock tokens, entry ids, sessions and webhook secrets. The
// store's own key is in it, also with --token-key-file: in two deployments with one file, nothing
// that one of them issues counts in the other.
func deploymentKey(file, stored []byte) ([]byte, error) {
	if file == nil {
		return stored, nil
	}
	return hkdf.Key(sha256.New, file, stored, "fencepost deployment 1", sha256.Size)
}

func (c *config) resolveSecret(env environment) error {
	inline, err := inlineSecret(env)
	given, wrong := env[envSecret] != "", []error{err}
	switch {
	case c.dev && (given || c.secretFile != "" || c.jwks != ""):
		wrong = append(wrong, usagef(
			"--dev makes a secret of its own and contradicts --jwt-secret-file, --jwks and %s", envSecret,
		))
	case given && c.secretFile != "":
		wrong = append(wrong, usagef("%s and --jwt-secret-file contradict each other", envSecret))
	case !c.dev && !given && c.secretFile == "" && c.jwks == "":
		wrong = append(
			wrong,
			usagef("no key for bearer tokens: set --jwt-secret-file or --jwks, or --dev to try things out"),
		)
	}
	if c.secret = inline; c.secretFile != "" {
		c.secret, err = readSecret("--jwt-secret-file", c.secretFile, minSecret)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// inlineSecret returns the secret that the environment itself holds, nil if none.
func inlineSecret(env environment) ([]byte, error) {
	text := env[envSecret]
	if text == "" {
		return nil, nil
	}
	if len(text) < minSecret {
		return nil, fmt.Errorf(
			"%s holds %d bytes, at least %d are needed", envSecret, len(text), minSecret,
		)
	}
	return []byte(text), nil
}

// byteOrderMark is what some editors put at the start of a file. In a secret it is invisible.
const byteOrderMark = "\ufeff"

// readSecret reads a secret from a file, without the line break that editors add.
func readSecret(flagName, path string, atLeast int) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagName, err)
	}
	return checkSecret(flagName, path, text, atLeast)
}

func checkSecret(flagName, path string, text []byte, atLeast int) ([]byte, error) {
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		return nil, fmt.Errorf(
			"%s: %s begins with a byte order mark: save it as UTF-8 without one", flagName, path,
		)
	}
	text = bytes.TrimRight(text, "\r\n")
	if len(text) < atLeast {
		return nil, fmt.Errorf(
			"%s: %s holds %d bytes, at least %d are needed", flagName, path, len(text), atLeast,
		)
	}
	return text, nil
}
