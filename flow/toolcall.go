package flow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Tools runs the tool calls of an answer at the same time, and appends a message with the
// result of each. Errors of tools, denials and calls of unknown tools are told to the
// model. No call runs before all reviews are answered. If the turn is run again, calls
// with a recorded result do not run. It returns the errors of Do, and ErrLimit.
func (t *Turn[S]) Tools(ctx context.Context, tools []ToolSpec, calls []event.Part) error {
	return t.t.tools(ctx, tools, calls)
}

func (t *turn) tools(ctx context.Context, tools []ToolSpec, calls []event.Part) error {
	if len(calls) == 0 {
		return nil
	}
	if err := t.checkTools(tools); err != nil {
		return err
	}
	if err := t.checkOpen(calls); err != nil {
		return err
	}
	specs := make([]spec, len(calls))
	for i, call := range calls {
		c := &toolCall{turn: t, call: call, tool: unknownTool(call.Name)}
		for _, tool := range tools {
			if tool.Name == call.Name {
				c.tool = tool
			}
		}
		specs[i] = c.spec()
	}
	before := t.head()
	results, err := t.batch(ctx, true, 0, specs)
	if err != nil || !slices.ContainsFunc(results, func(s settled) bool { return s.point.seq > before }) {
		return err
	}
	return t.toolsEnded(ctx)
}

// head is the seq of the newest event of the session.
func (t *turn) head() int64 {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.r.live.Head.Seq
}

// checkOpen returns an error if the history does not have one of the calls, or has its
// result. Nothing has run then.
func (t *turn) checkOpen(calls []event.Part) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.rec.step(t.next) {
		return nil // recorded
	}
	open := map[string]bool{}
	path, _ := projection.State(t.r.live, projection.Calls())
	for _, c := range path.Calls {
		open[c.CallID] = true
	}
	for i := range t.pending {
		m, _, err := event.Decode[event.Message](&t.pending[i])
		for _, p := range m.ToolCalls() {
			open[p.CallID] = err == nil
		}
	}
	for _, c := range calls {
		if !open[c.CallID] {
			return fmt.Errorf("call %q of tool %q: %w", c.CallID, c.Name, ErrNotOpen)
		}
	}
	return nil
}

// unknownTool is the result of a call of a tool that does not exist.
func unknownTool(name string) ToolSpec {
	return ToolSpec{Name: name, Class: event.EffectPure, Run: func(context.Context, event.Part) ([]event.Part, error) {
		return nil, fmt.Errorf("there is no tool named %q", name)
	}}
}

// toolCall is a call of a tool.
type toolCall struct {
	turn *turn
	call event.Part
	tool ToolSpec
}

func (c *toolCall) spec() spec {
	s := spec{kind: kindTool, name: c.call.Name, arguments: c.call.Arguments, class: c.tool.Class, callID: c.call.CallID,
		retry: c.tool.Retry, timeout: c.tool.Timeout, reviewed: c.tool.Review != nil, started: c.started, run: c.run, finish: c.finish}
	if c.tool.Review != nil {
		s.review = func(ctx context.Context) (*Question, error) { return c.tool.Review(ctx, c.call) }
	}
	return s
}

func (c *toolCall) started(key string) []event.Event {
	return []event.Event{event.New(event.ToolStart{CallID: c.call.CallID, Name: c.call.Name, IdempotencyKey: key})}
}

// run runs the tool, with the hooks before and after it. A person may have approved other arguments.
func (c *toolCall) run(ctx context.Context) (outcome, error) {
	call := c.call
	running, _ := runningOf(ctx)
	if running.Answer != nil && running.Answer.Arguments != nil {
		call.Arguments = running.Answer.Arguments
	}
	if c.tool.Run == nil {
		return outcome{}, Permanent(fmt.Errorf("tool %q has no Run", c.tool.Name))
	}
	hooks := hooks(c.turn.r.options.Hooks)
	call, err := hooks.beforeTool(ctx, call, running.Answer != nil)
	if err != nil {
		return outcome{}, err
	}
	parts, err := c.runTool(ctx, call)
	if !c.stillOpen(running, err) {
		parts, err = hooks.afterTool(ctx, call, parts, err)
	}
	if err == nil {
		err = event.Validate(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(call.CallID, call.Name, parts...)}})
	}
	if err == nil {
		parts, err = c.shorten(ctx, parts)
	}
	return outcome{parts: parts}, err
}

// runTool runs the tool. A panic is an error, which hooks get.
func (c *toolCall) runTool(ctx context.Context, call event.Part) (parts []event.Part, err error) {
	defer catch(&err)
	return c.tool.Run(ctx, call)
}

// stillOpen reports whether an attempt has no result: its child waits or has no end, or the runner stops.
func (c *toolCall) stillOpen(x *running, err error) bool {
	return x.blocked || err != nil && (c.turn.stopped(err) || x.child != nil && c.turn.halted())
}

// finish tells the model the result of the call. Nothing is told if the turn was aborted:
// the call is then closed as interrupted.
func (c *toolCall) finish(key string, o outcome, failed *event.EffectError, took time.Duration) []event.Event {
	done := event.ToolCompletion{CallID: c.call.CallID, Name: c.call.Name, IdempotencyKey: key, DurationMS: took.Milliseconds()}
	return toolEvents(done, o.parts, failed, c.limit())
}

// toolEvents are the end of a tool call and the message with its result.
func toolEvents(done event.ToolCompletion, parts []event.Part, failed *event.EffectError, limit int) []event.Event {
	result := event.ToolResult(done.CallID, done.Name, parts...)
	if failed != nil {
		done.IsError, done.Error = true, failed.Message
		result = event.ToolResult(done.CallID, done.Name, event.Text(shortened(failed.Message, limit, "the error of this call in the log")))
		result.IsError = true
	}
	events := []event.Event{event.New(done)}
	if failed != nil && failed.Code == codeAborted {
		return events
	}
	return append(events, event.ToolMessage(result))
}
