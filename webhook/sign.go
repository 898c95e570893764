package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks 1.0.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// MaxSecrets is with how many secrets one delivery is signed at most: the current one,
// and those that were rotated out and are still valid.
const MaxSecrets = 4

// Sign returns the headers that prove to a receiver who sent the payload, under which
// id, and when: at is the time of the attempt. There is one signature for each secret, so
// that a receiver may know any of them. It is an error to sign without a secret, with
// more than [MaxSecrets], or under an id that [ValidID] refuses.
func Sign(id string, at time.Time, payload []byte, secrets ...Secret) (http.Header, error) {
	if !ValidID(id) {
		return nil, errors.New("sign a webhook: its id is not valid")
	}
	if err := checkSecrets(secrets); err != nil {
		return nil, err
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s.key())
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(payload)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return http.Header{
		HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {strings.Join(signatures, " ")},
	}, nil
}

func checkSecrets(secrets []Secret) error {
	if len(secrets) == 0 || len(secrets) > MaxSecrets {
		return errors.New("sign a webhook: no secret, or too many")
	}
	for _, s := range secrets {
		if s.IsZero() {
			return errors.New("sign a webhook: one of its secrets is empty")
		}
	}
	return nil
}

// maxID is how long an id may be, in bytes.
const maxID = 64

// ValidID reports whether id may be a delivery's: ^[A-Za-z0-9_-]{1,64}$. What is signed
// is id, timestamp and payload with a dot between them, so an id with a dot in it could
// be read in two ways.
func ValidID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}
