package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestLogOfAYoungStore: what etcd says of a store that was just made, as an error, is
// nothing that an operator could act on. The same for another reason is.
func TestLogOfAYoungStore(t *testing.T) {
	const message = "failed to update storage version"
	var out bytes.Buffer
	log := zap.New(slogCore{log: slog.New(slog.NewTextHandler(&out, nil))})
	log.Error(message, zap.Error(errors.New("cannot detect storage schema version: missing term information")))
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
	log.Error(message, zap.Error(errors.New("no space left on device")), zap.String("cluster-version", "3.7.0"))
	if said := out.String(); !strings.Contains(said, message) || !strings.Contains(said, "no space left") || !strings.Contains(said, "level=ERROR") {
		t.Errorf("logged %q", said)
	}
}
