package etcd

import (
	"context"
	"log/slog"
	"strings"

	"go.uber.org/zap/zapcore"
)

// irrelevant tells warnings about listeners that the embedded member does not
// have, and about slow calls, which the store's own metrics tell better.
func irrelevant(message string) bool {
	switch message {
	case "Running http and grpc server on single port. This is not recommended for production.",
		"simple token is not cryptographically signed",
		"apply request took too long":
		return true
	}
	return false
}

// young tells what etcd says of the schema of a store that was just made, and has no
// term yet. It finds out a moment later.
func young(message string, fields map[string]any) bool {
	switch message {
	case "Failed to detect schema version", "failed to update storage version":
		why, _ := fields["error"].(string)
		return strings.HasSuffix(why, "missing term information")
	}
	return false
}

// slogCore passes etcd's warnings and errors on to a slog.Logger.
type slogCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

// Enabled implements zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(c.fields[:len(c.fields):len(c.fields)], fields...)
	return c
}

// Check implements zapcore.Core.
func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || irrelevant(e.Message) {
		return ce
	}
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	encoded := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(encoded)
	}
	if young(e.Message, encoded.Fields) {
		return nil
	}
	attrs := make([]slog.Attr, 0, len(encoded.Fields))
	for k, v := range encoded.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	level := slog.LevelWarn
	if e.Level > zapcore.WarnLevel {
		level = slog.LevelError
	}
	c.log.LogAttrs(context.Background(), level, "etcd: "+e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (c slogCore) Sync() error { return nil }
