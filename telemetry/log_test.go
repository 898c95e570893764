package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/telemetry"
)

func TestLoggerJSON(t *testing.T) {
	var log bytes.Buffer
	logger := telemetry.NewLogger(&log, telemetry.FormatJSON, slog.LevelInfo).With(
		slog.String("request_id", "r-1"),
	)
	logger.Debug("too low")
	logger.WithGroup("g").Info("granted", slog.Int("n", 1))
	logger.LogAttrs(t.Context(), slog.LevelInfo, "granted",
		slog.String("tenant", "acme"), slog.String("lock", "orders:42"))

	got := lines(t, log.Bytes())
	if len(got) != 2 {
		t.Fatalf("log = %v, want two lines", got)
	}
	if g, ok := got[0]["g"].(map[string]any); !ok || g["n"] != 1.0 {
		t.Errorf("line = %v, want g.n = 1", got[0])
	}
	line := got[1]
	for key, want := range map[string]any{
		"level": "INFO", "msg": "granted", "request_id": "r-1", "tenant": "acme", "lock": "orders:42",
	} {
		if line[key] != want {
			t.Errorf("%s = %v, want %v", key, line[key], want)
		}
	}
}

func TestLoggerTimesAreUTC(t *testing.T) {
	var log bytes.Buffer
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 7200))
	handler := telemetry.NewLogger(&log, telemetry.FormatText, slog.LevelInfo).Handler()
	if err := handler.Handle(
		context.Background(), slog.NewRecord(at, slog.LevelInfo, "m", 0),
	); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(log.String(), "time=2026-01-02T01:04:05.000Z ") {
		t.Errorf("line = %q, want the time in UTC", log.String())
	}
}
