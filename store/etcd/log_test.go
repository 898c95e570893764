package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestLogOfAYoungStore: what etcd says of a store that was just made, as an error, is
// nothing that an operator could act on. The same for another reason is.
func TestLogOfAYoungStore(t *testing.T) {
	const message = "failed to update storage version"
	var out bytes.Buffer
	log := newEtcdLog(slog.New(slog.NewTextHandler(&out, nil)))
	log.Error(message, zap.Error(errors.New("cannot detect storage schema version: missing term information")))
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
	log.Error(message, zap.Error(errors.New("no space left on device")), zap.String("cluster-version", "3.7.0"))
	if said := out.String(); !strings.Contains(said, message) || !strings.Contains(said, "no space left") || !strings.Contains(said, "level=ERROR") {
		t.Errorf("logged %q", said)
	}
}

// TestLogIsSampled: of one warning a few lines a minute are written, and how many were left out;
// other warnings have their own, and every error is there.
func TestLogIsSampled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := newEtcdLog(slog.New(slog.NewTextHandler(&out, nil)))
		lines := func(of string) int { return strings.Count(out.String(), of) }
		for range 1000 {
			log.Warn("slow fdatasync", zap.Duration("took", 2*time.Second))
			log.Error("failed to apply")
		}
		log.With(zap.String("lease-id", "7")).Warn("failed to revoke lease")
		if lines("slow fdatasync") != samplesOf || lines("failed to apply") != 1000 || lines("failed to revoke lease") != 1 {
			t.Errorf("%d, %d and %d lines", lines("slow fdatasync"), lines("failed to apply"), lines("failed to revoke lease"))
		}
		left := 0
		for _, m := range regexp.MustCompile(`silenced=(\d+)`).FindAllStringSubmatch(out.String(), -1) {
			n, _ := strconv.Atoi(m[1])
			left += n
		}
		if left != 1000-samplesOf {
			t.Errorf("it says that %d were left out", left)
		}
		<-time.After(2 * samplesEvery) // of the bubble's clock
		log.Warn("slow fdatasync")
		if lines("slow fdatasync") != samplesOf+1 {
			t.Error("the next minute's are left out too")
		}
	})
}

// TestSilencedIsWhatWouldBeSaid: what is never written is not counted as left out.
func TestSilencedIsWhatWouldBeSaid(t *testing.T) {
	var out bytes.Buffer
	log := newEtcdLog(slog.New(slog.NewTextHandler(&out, nil)))
	for range 1000 {
		log.Warn("apply request took too long")
		log.Warn("Failed to detect schema version", zap.Error(errors.New("missing term information")))
	}
	log.Warn("slow fdatasync")
	if said := out.String(); strings.Contains(said, "silenced") || !strings.Contains(said, "slow fdatasync") {
		t.Errorf("logged %s", said)
	}
}

// TestLastWords: why etcd ends the process is in the log.
func TestLastWords(t *testing.T) {
	var out bytes.Buffer
	log := newEtcdLog(slog.New(slog.NewTextHandler(&out, nil))).WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it goes on")
			}
		}()
		log.Fatal("failed to save Raft hard state", zap.Error(errors.New("no space left on device")))
	}()
	if said := out.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "no space left") {
		t.Errorf("logged %q", said)
	}
}
