package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// spans is a tracer that keeps the spans that ended.
type spans struct {
	embedded.TracerProvider
	mu    sync.Mutex
	ended []*span
	open  int
}

type span struct {
	noop.Span
	all    *spans
	name   string
	parent string
	attrs  []attribute.KeyValue
	status codes.Code
}

func (s *spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{all: s} }

type tracer struct {
	embedded.Tracer
	all *spans
}

func (r tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := r.all
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	config := trace.NewSpanStartConfig(o...)
	x := &span{all: s, name: name, attrs: config.Attributes()}
	if p, ok := trace.SpanFromContext(ctx).(*span); ok {
		x.parent = p.name
	}
	return trace.ContextWithSpan(ctx, x), x
}

func (x *span) SetAttributes(a ...attribute.KeyValue) { x.attrs = append(x.attrs, a...) }
func (x *span) SetStatus(c codes.Code, _ string)      { x.status = c }
func (x *span) End(...trace.SpanEndOption) {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	x.all.open--
	x.all.ended = append(x.all.ended, x)
}

func (x *span) has(key string) string {
	for _, a := range slices.Backward(x.attrs) {
		if string(a.Key) == key {
			return fmt.Sprint(a.Value.AsInterface())
		}
	}
	return ""
}

func TestSpans(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	all := &spans{}
	s.agent.Options.Observe.Traces = all
	s.agent.Run(t.Context(), "s", flow.Text("SECRET"))
	c, err := connectWith(t.Context(), &s.agent, "s", answerTo(open(t, s, "s")[0], event.Approved))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Output(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range all.ended {
		line := x.name + " < " + x.parent
		for _, key := range []string{"convlog.turn.status", "gen_ai.usage.input_tokens", "gen_ai.tool.call.id", "convlog.effect.ordinal"} {
			if v := x.has(key); v != "" {
				line += " " + v
			}
		}
		got = append(got, line)
		if x.has("gen_ai.conversation.id") != "s" || x.has("gen_ai.agent.name") != "shop" || x.status == codes.Error {
			t.Errorf("%s: %v", x.name, x.attrs)
		}
		if text := fmt.Sprint(x.attrs); strings.Contains(text, "SECRET") {
			t.Errorf("%s has the text of a message: %s", x.name, text)
		}
	}
	want := []string{"chat model < invoke_agent shop 10 0", "snapshot < invoke_agent shop", "invoke_agent shop <  hibernated",
		"execute_tool pay < invoke_agent shop c1-0 1.0", "chat model < invoke_agent shop 10 2", "snapshot < invoke_agent shop", "invoke_agent shop <  completed"}
	if !slices.Equal(got, want) || all.open != 0 {
		t.Errorf("%d open\ngot  %q\nwant %q", all.open, got, want)
	}
}
