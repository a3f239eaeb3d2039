package runlog

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// toolCalls makes the ops of tool calls from calls, executions and results.
type toolCalls struct {
	*current
	*opIndex
	early map[string]event.Part // results before their calls, by call id
}

// call begins the op of a call. The result may have come before.
func (b *toolCalls) call(p *event.Part) error {
	op := b.begin(ToolOp, p.CallID, p.Name)
	op.Request = b.content(p.Arguments)
	b.calls[p.CallID] = op
	r, ok := b.early[p.CallID]
	if !ok {
		return nil
	}
	delete(b.early, p.CallID)
	return b.result(&r)
}

// fold folds tool_started and tool_completed.
func (b *toolCalls) fold() (*Op, error) {
	p, err := event.DecodeKept[event.ToolCompletion](b.e)
	if err != nil {
		return nil, err
	}
	op := b.execution(&p)
	if b.e.Type.Name() == event.ToolStarted {
		start, err := event.DecodeKept[event.ToolStart](b.e)
		b.starts[b.e.ID] = [2]string{p.CallID, p.IdempotencyKey}
		op.Started = b.e.Timestamp
		if len(op.Request) == 0 {
			op.Request = b.content(start.Arguments)
		}
		return op, err
	}
	if len(p.Content) > 0 && !b.outline {
		if op.Response, err = json.Marshal(p.Content, jsontext.PreserveRawStrings(true)); err != nil {
			return nil, err
		}
	}
	op.Error = p.Error
	op.end(b.e, statusOf(p.IsError || p.Error != ""))
	return op, nil
}

// execution returns the op of a tool execution. If an effect with the same key has
// another op, the two become one.
func (b *toolCalls) execution(p *event.ToolCompletion) *Op {
	op, byKey := b.calls[p.CallID], b.keys[p.IdempotencyKey]
	switch {
	case p.CallID == "":
		op = byKey
	case op == nil:
		op = byKey
	case byKey != nil && byKey != op && p.IdempotencyKey != "":
		op.join(byKey)
		for _, c := range byKey.Children {
			b.waiting["child "+c.ID] = op
		}
		b.drop(byKey)
	}
	if op == nil {
		op = b.begin(ToolOp, cmp.Or(p.CallID, p.IdempotencyKey), p.Name)
	}
	if p.CallID != "" {
		b.calls[p.CallID] = op
	}
	if p.IdempotencyKey != "" {
		b.keys[p.IdempotencyKey] = op
	}
	return op
}

// join adds the members of an op of the same effect.
func (o *Op) join(other *Op) {
	o.Logs, o.Accounting = append(o.Logs, other.Logs...), append(o.Accounting, other.Accounting...)
	o.Attempts, o.Reviews, o.Pauses = append(o.Attempts, other.Attempts...), append(o.Reviews, other.Reviews...), append(o.Pauses, other.Pauses...)
	o.Children = append(o.Children, other.Children...)
	o.effect, o.attempt, o.attempted, o.began = other.effect, other.attempt, other.attempted, other.began
}

// result ends the tool op of the call.
func (b *toolCalls) result(p *event.Part) error {
	op := b.calls[p.CallID]
	if op == nil {
		if slices.Contains(b.e.Broken(), event.OrphanResult) {
			b.early[p.CallID] = *p
		}
		return nil
	}
	if op.Status == OpOpen {
		op.end(b.e, statusOf(p.IsError || p.Interrupted))
	}
	if len(op.Response) > 0 || len(p.Content) == 0 || b.outline {
		return nil
	}
	raw, err := json.Marshal(p.Content, jsontext.PreserveRawStrings(true))
	op.Response = raw
	return err
}
