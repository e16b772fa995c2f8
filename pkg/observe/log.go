package observe

import (
	"context"
	"io"
	"log/slog"
)

// NewLogger writes JSON, a line for each look that did something and for what
// went wrong.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return Logger(slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})))
}

// Logger makes a logger know looks: what is logged at level Info in one becomes a
// part of its line, and each line has the trace's id.
func Logger(log *slog.Logger) *slog.Logger {
	if _, known := log.Handler().(*handler); known {
		return log
	}
	return slog.New(&handler{log.Handler()})
}

type handler struct{ slog.Handler }

// ended marks the line of a look itself.
type ended struct{}

// Enabled takes what is a part of a look whatever the level is: what a look did
// counts for its span and its metric too.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	if _, own := ctx.Value(ended{}).(*Look); !own && level == slog.LevelInfo && lookOf(ctx) != nil {
		return true
	}
	return h.Handler.Enabled(ctx, level)
}

// Handle passes on what is not a part of a look's line.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	of, own := ctx.Value(ended{}).(*Look)
	if own {
		// End holds the look's lock.
		if sc := of.context(); sc.HasTraceID() {
			r.AddAttrs(slog.String("trace_id", sc.TraceID().String()))
		}
		return h.Handler.Handle(ctx, r)
	}
	if l := lookOf(ctx); l != nil && r.Level == slog.LevelInfo {
		l.note(r)
		if !h.Handler.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
	}
	if id := TraceID(ctx); id != "" {
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps what it is.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps what it is.
func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.Handler.WithGroup(name)} }
