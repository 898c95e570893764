package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
)

// The formats of the log.
const (
	FormatJSON = "json"
	FormatText = "text"
)

// NewLogger returns a logger that writes one line per record of at least level to w, in
// [FormatText] or else in [FormatJSON], with times in UTC. If w has a method Flush() error, as
// [LineWriter] has, the logger calls it after each record of level warn or above. So such a line
// has left the process when its call returns, unless the reader is blocked.
func NewLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var inner slog.Handler = slog.NewJSONHandler(w, options)
	if format == FormatText {
		inner = slog.NewTextHandler(w, options)
	}
	h := handler{inner: inner, flush: func() error { return nil }}
	if f, ok := w.(interface{ Flush() error }); ok {
		h.flush = f.Flush
	}
	return slog.New(h)
}

// lostLines makes the line about others that were lost, for a log of the format.
func lostLines(format string) func(Lost) []byte {
	return func(l Lost) []byte {
		var line bytes.Buffer
		attrs := []slog.Attr{slog.Uint64("dropped", l.Lines)}
		if l.Err != nil {
			attrs = append(attrs, slog.String("error", l.Err.Error()))
		}
		NewLogger(&line, format, slog.LevelWarn).LogAttrs(context.Background(), slog.LevelWarn,
			"lines of the log were dropped: their reader is too slow", attrs...)
		return line.Bytes()
	}
}

// handler adds UTC and the flush after warnings to a handler of log/slog.
type handler struct {
	inner slog.Handler
	flush func() error
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	r.Time = r.Time.UTC()
	err := h.inner.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		err = errors.Join(err, h.flush())
	}
	return err
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{inner: h.inner.WithAttrs(attrs), flush: h.flush}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{inner: h.inner.WithGroup(name), flush: h.flush}
}
