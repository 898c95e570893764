package etcd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestSupported(t *testing.T) {
	for version, want := range map[string]bool{
		"2.3.8": false, "3.5.21": false, "3.6.13": false, "3.6.14": true, "3.6.16": true, "3.7.0": false,
		"3.7.0-rc.0": false,
		"3.7.1":      true, "3.7.3": true, "3.8.0-alpha.0": true, "4.0.0": true, "not decided": true,
	} {
		if got := supported(version); got != want {
			t.Errorf("supported(%s) = %v", version, got)
		}
	}
}

// TestOldServersAreTold: a store that is opened on old servers says so.
func TestOldServersAreTold(t *testing.T) {
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := make(chan struct{})
	conn.endpoints = []string{"fresh:2379", "gone:2379", "old:2379", "last:2379"}
	conn.version = func(_ context.Context, endpoint string) (string, error) {
		switch endpoint {
		case "old:2379":
			return "3.5.21", nil
		case "gone:2379":
			return "", errors.New("it does not answer")
		case "last:2379":
			close(last)
		}
		return "3.7.3", nil
	}
	var log bytes.Buffer // of one goroutine, which Close waits for
	s, err := Open(
		t.Context(), conn,
		Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))},
	)
	if err != nil {
		t.Fatal(err)
	}
	<-last
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "too old") != 1 ||
		!strings.Contains(text, "server=old:2379 version=3.5.21") {
		t.Errorf("logged: %s", text)
	}
}
