package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// On a slow disk etcd logs a warning for each flush and each failed request. The log gets
// samplesOf lines of each message in each samplesEvery.
const (
	samplesOf    = 5
	samplesEvery = time.Minute
)

// etcdLog passes etcd's warnings and errors on to a slog.Logger, which may be nil.
func etcdLog(log *slog.Logger) *zap.Logger {
	if log == nil {
		return zap.NewNop()
	}
	return zap.New(zapcore.NewSamplerWithOptions(slogCore{log: log}, samplesEvery, samplesOf, 0))
}

// slogCore is a zapcore.Core over a slog.Logger.
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

// irrelevant reports whether a line needs no log. Such lines are about listeners that the
// embedded member does not have, about slow calls, which are in the metrics, about the schema of a
// new store, or about a list of members that a member which starts is in only a moment later.
func irrelevant(message string) bool {
	switch message {
	case "Running http and grpc server on single port. This is not recommended for production.",
		"simple token is not cryptographically signed",
		"apply request took too long",
		"Failed to detect schema version", "failed to update storage version",
		"failed to publish local member to cluster through raft":
		return true
	}
	return false
}

// Write implements zapcore.Core.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	encoded := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(encoded)
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

// lastWords handles an etcd line that would end the process. During launch it panics instead, and
// the launching goroutine turns that into an error.
type lastWords struct{ launching *atomic.Bool }

// OnWrite implements zapcore.CheckWriteHook.
func (w lastWords) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if !w.launching.Load() {
		zapcore.WriteThenFatal.OnWrite(e, fields)
	}
	why := ""
	for _, f := range fields {
		if err, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
			why = err.Error()
		}
	}
	panic(e.Message + ": " + why)
}
