package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
)

const (
	webhookTolerance = 5 * time.Minute
	leastSecret      = 24 // bytes
)

// webhookID matches ids without a dot: what is signed has one after the id and the timestamp.
var webhookID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// VerifyWebhook returns the event of a delivery that is signed with one of the secrets, as Standard
// Webhooks 1.0 says, and not older or newer than five minutes. While you rotate a secret, give
// both. body has to be as it came, before anything parses it.
//
// A delivery may come again, also from an attacker within the five minutes: pass over an event
// whose webhook-id you have seen. The error has the code [BadWebhook]; answer it with 400.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (*api.Event, error) {
	return verifyAt(time.Now(), header, body, secrets)
}

func verifyAt(
	now time.Time, header http.Header, body []byte, secrets []string,
) (*api.Event, error) {
	if err := signed(now, header, body, secrets); err != nil {
		return nil, newError(BadWebhook, "the delivery is not one of the sender", err)
	}
	event := new(api.Event)
	err := json.Unmarshal(body, event)
	if err != nil || event.ID == "" || event.Type == "" || event.Timestamp == "" {
		return nil, newError(BadWebhook, "the delivery has no event", err)
	}
	return event, nil
}

// signed returns why a delivery is not believed.
func signed(now time.Time, header http.Header, body []byte, secrets []string) error {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	if !webhookID.MatchString(id) {
		return errors.New("the id is not valid")
	}
	sent, err := strconv.ParseUint(timestamp, 10, 63) // unlike ParseInt, it reads no sign
	if err != nil || now.Sub(time.Unix(int64(sent), 0)).Abs() > webhookTolerance {
		return fmt.Errorf("the timestamp %q is not of now", timestamp)
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < leastSecret {
			return errors.New("a secret is not valid")
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, signature := range strings.Fields(header.Get("webhook-signature")) {
			if hmac.Equal([]byte(signature), want) {
				return nil
			}
		}
	}
	return errors.New("no signature is of these secrets")
}
