package flow

import (
	"context"
	"log/slog"

	"github.com/convlog/convlog/runlog/sink"
)

// origin is the session at the root of the tree of agents.
func (r *runner) origin() string {
	if r.root != "" {
		return r.root
	}
	return r.session
}

// childFinished gives the sinks the tree after the end of a child.
func (r *runner) childFinished(ctx context.Context) {
	r.warn(ctx, r.sinks.ChildFinished(ctx))
}

// finishSinks gives the sinks the tree and the costs at the end of the invocation.
func (r *runner) finishSinks(ctx context.Context) { r.warn(ctx, r.sinks.Finish(ctx)) }

// warn logs the deliveries that failed.
func (r *runner) warn(ctx context.Context, warnings []*sink.Error) {
	for _, w := range warnings {
		r.options.Observe.Logger.LogAttrs(ctx, slog.LevelWarn, "sink failed", slog.String("sink", w.Sink), slog.String("session", w.Session),
			slog.Any("error", w.Cause))
	}
}
