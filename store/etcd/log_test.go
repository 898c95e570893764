package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestLogOfANewStore: what etcd says of a store that was just made is nothing that an operator
// could act on.
func TestLogOfANewStore(t *testing.T) {
	var out bytes.Buffer
	log := etcdLog(slog.New(slog.NewTextHandler(&out, nil)))
	log.Error("failed to update storage version", zap.Error(errors.New("missing term information")))
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
}

// TestLogIsSampled: of one message a few lines a minute are written; other messages have their own.
func TestLogIsSampled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := etcdLog(slog.New(slog.NewTextHandler(&out, nil)))
		lines := func(of string) int { return strings.Count(out.String(), of) }
		for range 1000 {
			log.Warn("slow fdatasync", zap.Duration("took", 2*time.Second))
		}
		log.With(zap.String("lease-id", "7")).Warn("failed to revoke lease")
		if lines("slow fdatasync") != samplesOf || lines("failed to revoke lease") != 1 {
			t.Errorf("logged %s", &out)
		}
		<-time.After(2 * samplesEvery) // of the bubble's clock
		log.Warn("slow fdatasync")
		if lines("slow fdatasync") != samplesOf+1 {
			t.Error("the next minute's are left out too")
		}
	})
}

// TestLastWords: why etcd ends the process is in the log.
func TestLastWords(t *testing.T) {
	var out bytes.Buffer
	log := etcdLog(slog.New(slog.NewTextHandler(&out, nil))).WithOptions(
		zap.WithFatalHook(zapcore.WriteThenPanic),
	)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it goes on")
			}
		}()
		log.Fatal("failed to save Raft hard state", zap.Error(errors.New("no space left on device")))
	}()
	if said := out.String(); !strings.Contains(said, "level=ERROR") ||
		!strings.Contains(said, "no space left") {
		t.Errorf("logged %q", said)
	}
}
