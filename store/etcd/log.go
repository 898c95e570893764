package etcd

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
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
func young(message string, fields []zapcore.Field) bool {
	switch message {
	case "Failed to detect schema version", "failed to update storage version":
		return strings.HasSuffix(errorIn(fields), "missing term information")
	}
	return false
}

func errorIn(fields []zapcore.Field) string {
	for _, f := range fields {
		if why, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
			return why.Error()
		}
	}
	return ""
}

// What etcd warns of while it is slow, as of each slow flush and each request that fails, would be
// thousands of lines. Of each message samplesOf go into the log in each samplesEvery, and the next
// line of any says how many were left out.
const (
	samplesOf    = 5
	samplesEvery = time.Minute
)

// etcdLog is what etcd writes its log to, nothing without a logger.
func etcdLog(log *slog.Logger) *zap.Logger {
	if log == nil {
		return zap.NewNop()
	}
	return newEtcdLog(log)
}

// newEtcdLog passes etcd's warnings, sampled, and all of its errors on to a slog.Logger.
func newEtcdLog(log *slog.Logger) *zap.Logger {
	silenced := new(atomic.Int64)
	count := func(_ zapcore.Entry, decision zapcore.SamplingDecision) {
		if decision&zapcore.LogDropped != 0 {
			silenced.Add(1)
		}
	}
	warnings := slogCore{log: log, from: zapcore.WarnLevel, to: zapcore.WarnLevel, silenced: silenced}
	errors := slogCore{log: log, from: zapcore.ErrorLevel, to: zapcore.FatalLevel, silenced: silenced}
	return zap.New(relevant{zapcore.NewTee(
		zapcore.NewSamplerWithOptions(warnings, samplesEvery, samplesOf, 0, zapcore.SamplerHook(count)),
		errors,
	)})
}

// lastWords is what happens after a line of etcd's that is to end the process: it does, but for
// while etcd is launched, by the goroutine that can then tell more.
type lastWords struct{ launching *atomic.Bool }

// OnWrite implements zapcore.CheckWriteHook.
func (w lastWords) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if !w.launching.Load() {
		zapcore.WriteThenFatal.OnWrite(e, fields)
	}
	panic(e.Message + ": " + errorIn(fields))
}

// relevant keeps what is not worth a line from the sampling, which would count it as left out.
type relevant struct{ zapcore.Core }

// With implements zapcore.Core.
func (c relevant) With(fields []zapcore.Field) zapcore.Core { return relevant{c.Core.With(fields)} }

// Check implements zapcore.Core.
func (c relevant) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || irrelevant(e.Message) {
		return ce
	}
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core. It is sampled only now, as what is young shows in the fields.
func (c relevant) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !young(e.Message, fields) {
		c.Core.Check(e, nil).Write(fields...)
	}
	return nil
}

// slogCore passes what etcd says at some levels on to a slog.Logger.
type slogCore struct {
	log      *slog.Logger
	from, to zapcore.Level
	silenced *atomic.Int64 // lines left out since one was written
	fields   []zapcore.Field
}

// Enabled implements zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool { return l >= c.from && l <= c.to }

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(c.fields[:len(c.fields):len(c.fields)], fields...)
	return c
}

// Check implements zapcore.Core.
func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
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
	attrs := make([]slog.Attr, 0, len(encoded.Fields)+1)
	if n := c.silenced.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("silenced", n))
	}
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
