package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// TestLoggerWritesAsSlogDoes: whatever the kinds of the attributes are, a line is the one that
// [slog.JSONHandler] writes.
func TestLoggerWritesAsSlogDoes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	for _, attrs := range [][]slog.Attr{
		{},
		{slog.String("lock", "orders:42"), slog.Int("status", 201), slog.Float64("duration_ms", 0.412)},
		{slog.Float64("f", 12), slog.Float64("f", 0), slog.Int("n", -7)},
		{slog.Float64("f", -1.5), slog.Float64("g", 1e-9), slog.Float64("h", 1e300)},
		{slog.String("s", "a\"b\\c\n\t\x01\x7f<>&é✓"), slog.String("s", "")},
		{slog.String("s", "\xff"), slog.Bool("b", true)},
		{slog.String("k\"<\n", "a"), slog.Uint64("u", 1)},
		{slog.Any("e", io.EOF), slog.Duration("d", time.Second), slog.Any("a", []int{1})},
		{{Value: slog.GroupValue(slog.String("a", "1"), slog.Int("b", 2))}, slog.Int("c", 3)},
		{slog.Group("g", slog.String("a", "1")), slog.Int("c", 3)},
	} {
		var want, got bytes.Buffer
		same := slog.Handler(slog.NewJSONHandler(&want, nil))
		ours := telemetry.NewLogger(&got, telemetry.FormatJSON, slog.LevelInfo).Handler()
		for range 2 { // the second time after the same attributes
			line := slog.NewRecord(at, slog.LevelInfo, "a \"request\"", 0)
			line.AddAttrs(attrs...)
			err := errors.Join(same.Handle(t.Context(), line), ours.Handle(t.Context(), line))
			if err != nil {
				t.Fatal(err)
			}
			same, ours = same.WithAttrs(attrs), ours.WithAttrs(attrs)
		}
		if got.String() != want.String() {
			t.Errorf("got  %swant %s", got.String(), want.String())
		}
	}
}
