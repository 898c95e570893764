package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonHandler writes a record of strings and numbers as [slog.JSONHandler] does, at a third of the
// processor time, and leaves all others to that. A server writes such a line for each request.
type jsonHandler struct {
	slog.Handler // the JSONHandler, with the attributes in fixed
	out          io.Writer
	fixed        []byte // the members that are the same in all lines
	lines        *sync.Pool
}

func newJSONHandler(out io.Writer, options *slog.HandlerOptions) slog.Handler {
	return jsonHandler{
		Handler: slog.NewJSONHandler(out, options), out: out,
		lines: &sync.Pool{New: func() any { return new([]byte) }},
	}
}

// Handle implements [slog.Handler].
func (h jsonHandler) Handle(ctx context.Context, r slog.Record) error {
	line := h.lines.Get().(*[]byte)
	defer h.lines.Put(line)
	text := append((*line)[:0], `{"time":"`...)
	text = append(r.Time.AppendFormat(text, time.RFC3339Nano), `","level":"`...)
	text = append(append(text, r.Level.String()...), '"')
	text, plain := appendMember(text, slog.String(slog.MessageKey, r.Message))
	text = append(text, h.fixed...)
	r.Attrs(func(a slog.Attr) bool {
		if plain {
			text, plain = appendMember(text, a)
		}
		return plain
	})
	*line = append(text, "}\n"...)
	if !plain || r.Time.IsZero() {
		return h.Handler.Handle(ctx, r)
	}
	_, err := h.out.Write(*line)
	return err
}

// WithAttrs implements [slog.Handler].
func (h jsonHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	inner := h.Handler.WithAttrs(attrs)
	fixed, plain := appendMembers(h.fixed[:len(h.fixed):len(h.fixed)], attrs)
	if !plain {
		return inner
	}
	return jsonHandler{inner, h.out, fixed, h.lines}
}

func appendMembers(to []byte, attrs []slog.Attr) (text []byte, plain bool) {
	plain = true
	for i := 0; plain && i < len(attrs); i++ {
		to, plain = appendMember(to, attrs[i])
	}
	return to, plain
}

// appendMember appends a comma and the attribute. It reports false if that is no string or number,
// or is one that needs more than its digits or its characters.
func appendMember(to []byte, a slog.Attr) (text []byte, plain bool) {
	if a.Key == "" && a.Value.Kind() == slog.KindGroup {
		return appendMembers(to, a.Value.Group())
	}
	to, err := jsontext.AppendQuote(append(to, ','), a.Key)
	if to = append(to, ':'); err != nil {
		return to, false
	}
	switch a.Value.Kind() {
	case slog.KindString:
		to, err = jsontext.AppendQuote(to, a.Value.String())
		return to, err == nil
	case slog.KindInt64:
		return strconv.AppendInt(to, a.Value.Int64(), 10), true
	case slog.KindFloat64:
		f := a.Value.Float64()
		return strconv.AppendFloat(to, f, 'f', -1, 64), f == 0 || f >= 1e-6 && f < 1e15
	}
	return to, false
}
