package flow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/convlog/convlog/event"
)

// scopeName names this package to OpenTelemetry.
const scopeName = "github.com/convlog/convlog/flow"

// The attributes of spans and metrics.
const (
	attrOperation    = attribute.Key("gen_ai.operation.name")
	attrAgent        = attribute.Key("gen_ai.agent.name")
	attrConversation = attribute.Key("gen_ai.conversation.id")
	attrProvider     = attribute.Key("gen_ai.provider.name")
	attrRequestModel = attribute.Key("gen_ai.request.model")
	attrModel        = attribute.Key("gen_ai.response.model")
	attrResponse     = attribute.Key("gen_ai.response.id")
	attrFinish       = attribute.Key("gen_ai.response.finish_reasons")
	attrInput        = attribute.Key("gen_ai.usage.input_tokens")
	attrOutput       = attribute.Key("gen_ai.usage.output_tokens")
	attrTokenType    = attribute.Key("gen_ai.token.type")
	attrTool         = attribute.Key("gen_ai.tool.name")
	attrCall         = attribute.Key("gen_ai.tool.call.id")
	attrError        = attribute.Key("error.type")
	attrTurn         = attribute.Key("convlog.turn.id")
	attrSnapshot     = attribute.Key("convlog.snapshot.id")
	attrOrdinal      = attribute.Key("convlog.effect.ordinal")
	attrAttempt      = attribute.Key("convlog.effect.attempt")
	attrStatus       = attribute.Key("convlog.turn.status")
	attrStop         = attribute.Key("convlog.turn.stop_reason")
	attrResumed      = attribute.Key("convlog.turn.resumed")
)

// telemetry is the instruments of an agent.
type telemetry struct {
	tracer   trace.Tracer
	tokens   metric.Int64Histogram
	duration metric.Float64Histogram
	turns    metric.Int64Counter
}

func newTelemetry(o Observe) (*telemetry, error) {
	if o.Traces == nil {
		o.Traces = otel.GetTracerProvider()
	}
	if o.Metrics == nil {
		o.Metrics = otel.GetMeterProvider()
	}
	meter := o.Metrics.Meter(scopeName)
	tokens, err1 := meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of each call of a model."))
	duration, err2 := meter.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("Duration of each attempt of an effect."))
	turns, err3 := meter.Int64Counter("convlog.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns that ended, by status."))
	return &telemetry{o.Traces.Tracer(scopeName), tokens, duration, turns}, errors.Join(err1, err2, err3)
}

// logLine gives the logger a line about the session.
func (r *runner) logLine(ctx context.Context, text string, attrs ...any) {
	r.options.Observe.Logger.InfoContext(ctx, text, append([]any{"session", r.session, "agent", r.name, "epoch", r.epoch}, attrs...)...)
}

// startTurnSpan begins the span of one execution of a turn.
func (r *runner) startTurnSpan(ctx context.Context, rec *records) (context.Context, trace.Span) {
	return r.telemetry.tracer.Start(ctx, "invoke_agent "+r.name, trace.WithAttributes(attrOperation.String("invoke_agent"), attrAgent.String(r.name),
		attrConversation.String(r.session), attrTurn.String(rec.turn.String()), attrSnapshot.String(rec.snapshotID()), attrResumed.Bool(len(rec.events) > 0)))
}

// endTurnSpan ends the span of an execution that ended the turn, hibernated, or stopped.
func (r *runner) endTurnSpan(ctx context.Context, span trace.Span, c *event.TurnCompletion, err error) {
	status := "open"
	var pause *Hibernated
	switch {
	case c != nil:
		status = string(c.Status)
		span.SetAttributes(attrStop.String(c.StopReason))
		r.telemetry.turns.Add(ctx, 1, metric.WithAttributes(attrAgent.String(r.name), attrStatus.String(status)))
	case errors.As(err, &pause):
		status, err = "hibernated", nil
	}
	span.SetAttributes(attrStatus.String(status))
	fail(span, err)
	span.End()
}

// startAttempt begins the span of an attempt of an effect.
func (t *turn) startAttempt(ctx context.Context, x *effect) (context.Context, trace.Span) {
	attrs := []attribute.KeyValue{attrAgent.String(t.r.name), attrConversation.String(t.r.session), attrTurn.String(t.rec.turn.String()),
		attrOrdinal.String(x.ordinal), attrAttempt.Int(x.attempt)}
	operation := x.operation()
	name := operation + " " + x.name
	switch x.kind {
	case kindModel, kindCompaction:
		attrs = append(attrs, attrRequestModel.String(x.name))
	case kindTool:
		attrs = append(attrs, attrTool.String(x.name), attrCall.String(x.callID))
	}
	return t.r.telemetry.tracer.Start(ctx, name, trace.WithAttributes(append(attrs, attrOperation.String(operation))...))
}

// operation is the name that the conventions have for the kind of an effect.
func (x *effect) operation() string {
	switch x.kind {
	case kindModel, kindCompaction:
		return "chat"
	case kindTool:
		return "execute_tool"
	}
	return "effect"
}

// endAttempt ends the span of an attempt, and records its duration and tokens.
func (t *turn) endAttempt(ctx context.Context, span trace.Span, x *effect, o outcome, err error, took time.Duration) {
	defer span.End()
	fail(span, err)
	m, model := o.answer.Message, x.kind == kindModel || x.kind == kindCompaction
	if model && err == nil {
		span.SetAttributes(attrProvider.String(m.Provider), attrModel.String(m.Model), attrResponse.String(m.ResponseID), attrFinish.StringSlice([]string{m.StopReason}),
			attrInput.Int64(m.Usage.InputTokens), attrOutput.Int64(m.Usage.OutputTokens))
	}
	duration, tokens := t.r.telemetry.duration, t.r.telemetry.tokens
	if !duration.Enabled(ctx) && !tokens.Enabled(ctx) {
		return // sets of attributes are slow to make
	}
	attrs := []attribute.KeyValue{attrOperation.String(x.operation()), attrAgent.String(t.r.name)}
	if model {
		attrs = append(attrs, attrRequestModel.String(x.name), attrProvider.String(m.Provider), attrModel.String(m.Model))
	}
	if err != nil {
		duration.Record(ctx, took.Seconds(), metric.WithAttributes(append(attrs, attrError.String(t.errorType(err)))...))
		return
	}
	duration.Record(ctx, took.Seconds(), metric.WithAttributes(attrs...))
	if model {
		tokens.Record(ctx, m.Usage.InputTokens, metric.WithAttributes(append(attrs, attrTokenType.String("input"))...))
		tokens.Record(ctx, m.Usage.OutputTokens, metric.WithAttributes(append(attrs, attrTokenType.String("output"))...))
	}
}

// errorType is the kind of an error, without its text: a text may have content.
func (t *turn) errorType(err error) string {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.recordedError(err).Code
}

// fail marks a span as failed, if err is not nil. The span does not get the text of the
// error.
func fail(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
}

// warnings is a handler without lines below a warning.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
