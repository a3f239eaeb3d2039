package runlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// message folds a message: an input, an answer of an llm op, or tool results.
func (b *runBuilder) message() (*Op, error) {
	m, err := b.read()
	if err != nil {
		return nil, err
	}
	if !b.e.IsContext() && len(b.leading) > 0 {
		b.lead(b.turn)
	}
	var op *Op
	if m.Role == event.Assistant {
		op = b.answer(&m)
		b.output(&m)
	} else {
		b.input(&m)
	}
	for _, p := range m.ToolResults() {
		if err := b.result(&p); err != nil {
			return nil, err
		}
	}
	for _, p := range m.ToolCalls() {
		call := b.begin(ToolOp, p.CallID, p.Name)
		call.Request = b.content(p.Arguments)
		b.calls[p.CallID] = call
		if r, ok := b.early[p.CallID]; ok {
			delete(b.early, p.CallID)
			if err := b.result(&r); err != nil {
				return nil, err
			}
		}
	}
	return op, nil
}

// read decodes the message of the event. A redacted message has the ids of its calls
// and results, without content.
func (b *runBuilder) read() (m event.Message, err error) {
	if !b.e.Redacted() {
		m, _, err = event.Decode[event.Message](b.e)
		return m, err
	}
	redacted, err := event.DecodeKept[struct {
		event.Message `json:",inline"`
		Calls         []string `json:"calls"`
		Results       []string `json:"results"`
	}](b.e)
	m = redacted.Message
	for _, id := range redacted.Calls {
		m.Parts = append(m.Parts, event.ToolCall(id, "", nil))
	}
	for _, id := range redacted.Results {
		m.Parts = append(m.Parts, event.ToolResult(id, ""))
	}
	return m, err
}

// input adds a message to the input or the context of the turn, if it has more than
// tool results.
func (b *runBuilder) input(m *event.Message) {
	if len(m.ToolResults()) == len(m.Parts) && len(m.Parts) > 0 {
		return
	}
	switch t := b.turn; {
	case m.Role == event.User && b.e.IsContext() && (t == nil || t.ID.IsZero()):
		b.leading = append(b.leading, leadingContext{t, b.logLine(), *m})
	case t == nil:
		b.log(b.logLine())
	case m.Role == event.User && !b.e.IsContext():
		t.Input = append(t.Input, b.said(m))
	default:
		b.contextOf(t, m)
	}
}

// leadingContext is a context message before the next input. It belongs to the turn of
// the input, or, if there is none, to the turn that it came in.
type leadingContext struct {
	turn    *Turn
	line    LogLine
	message event.Message
}

// lead gives the leading context to turn t.
func (b *runBuilder) lead(t *Turn) {
	for _, c := range b.leading {
		if t != nil {
			b.contextOf(t, &c.message)
		} else {
			b.logTo(&b.run.Logs, c.line)
		}
	}
	b.leading = nil
}

// endLeading gives the leading context to the turn that it came in, before an event that
// leaves the turn or is no input.
func (b *runBuilder) endLeading() {
	if len(b.leading) > 0 {
		b.lead(b.leading[0].turn)
	}
}

// output sets the output of the turn. It joins the pieces of one group.
func (b *runBuilder) output(m *event.Message) {
	said := b.said(m)
	switch t := b.turn; {
	case t == nil:
	case t.Output != nil && m.Group != "" && t.Output.Group == m.Group:
		t.Output.Parts = append(t.Output.Parts, said.Parts...)
		t.Output.Usage, t.Output.StopReason = m.Usage, cmp.Or(m.StopReason, t.Output.StopReason)
	default:
		said.Parts = slices.Clip(said.Parts)
		t.Output = &said
	}
}

// answer returns the llm op of a message.
func (b *runBuilder) answer(m *event.Message) *Op {
	id := cmp.Or(m.Group, m.ResponseID)
	op := b.answers[id]
	if id == "" || op == nil || b.owner[op] != b.turn {
		op = b.llm
	}
	if op == nil {
		op = b.counted()
	}
	b.ahead = nil
	if op == nil && b.turn != nil && b.turn.effects && m.Model == "" && m.Usage.IsZero() {
		return nil // the program of the turn said it
	}
	if op == nil {
		op = b.begin(LLMOp, b.e.ID.String(), m.Model)
		op.startAt(b.heard)
	}
	if id != "" {
		b.answers[id] = op
	}
	if b.last = op; op.stepped {
		b.last = nil
	}
	op.Name = cmp.Or(op.Name, m.Model)
	op.respond(b.content(b.e.Data))
	if op != b.llm {
		op.end(b.e, OpOK)
	}
	return op
}

// counted returns the op of the completed step before the event, if the step is of the
// answer that the event is: some logs count an answer a moment before they have it.
func (b *runBuilder) counted() *Op {
	op := b.ahead
	if op == nil || b.owner[op] != b.turn || !projection.IsAhead(op.Ended, b.e.Timestamp) {
		return nil
	}
	op.startAt(b.heard)
	return op
}

// startAt moves the start of an op to the time of the event that it answers: the log has no
// start of the call.
func (o *Op) startAt(heard time.Time) {
	if !heard.IsZero() && heard.Before(o.Started) {
		o.Started = heard
	}
}

func (b *runBuilder) step() (*Op, error) {
	p, err := event.DecodeKept[event.StepCompletion](b.e)
	if err != nil {
		return nil, err
	}
	key := stepKey{p.TurnID, p.Step}
	if b.e.Type.Name() == event.StepStarted {
		op := b.llm
		if op == nil || !op.effect || b.owner[op] != b.turn || b.steps[key] == op {
			op = b.begin(LLMOp, b.e.ID.String(), p.Model)
		}
		op.ask(b.content(b.e.Data))
		op.Name = cmp.Or(p.Model, op.Name)
		b.steps[key], b.llm = op, op
		return op, err
	}
	op := b.steps[key]
	if op == nil && p.ResponseID != "" {
		op = b.answers[p.ResponseID]
	} else if op == nil && b.owner[b.last] == b.turn {
		op = b.last
	}
	if _, started := b.steps[key]; !started && p.ResponseID == "" && p.Usage.IsZero() && p.Error == "" {
		b.log(b.logLine()) // the cost of a session, not of an answer
		return nil, nil
	}
	b.last = nil
	if op == nil || op.Kind != LLMOp {
		op = b.begin(LLMOp, b.e.ID.String(), p.Model)
		b.ahead = op
	}
	delete(b.steps, key)
	op.stepped = true
	op.respond(b.content(b.e.Data))
	op.Error, op.Status = p.Error, statusOf(p.Error != "")
	if op == b.llm || op.Ended.IsZero() {
		op.Ended = b.e.Timestamp
	}
	if b.llm == op && !op.effect {
		b.llm = nil
	}
	return op, nil
}

func statusOf(failed bool) OpStatus {
	if failed {
		return OpFailed
	}
	return OpOK
}

// tool folds tool_started and tool_completed.
func (b *runBuilder) tool() (*Op, error) {
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
func (b *runBuilder) execution(p *event.ToolCompletion) *Op {
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
func (b *runBuilder) result(p *event.Part) error {
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

// child folds an event of a child run. It belongs to the op of the effect whose key is the
// child's id, else to the op of the call or the effect that started the run, else to an op
// of its own.
func (b *runBuilder) child() (*Op, error) {
	p, err := event.DecodeKept[event.Child](b.e)
	if err != nil {
		return nil, err
	}
	state, _ := b.e.Type.ChildState()
	op := b.waiting["child "+p.ChildID]
	if op == nil {
		start := b.starts[p.ParentEventID]
		if op = cmp.Or(b.keys[p.ChildID], b.opByID(p.CallID, start[0], start[1])); op == nil {
			op = b.begin(SystemOp, p.ChildID, "child")
		}
		b.waiting["child "+p.ChildID] = op
	}
	c := b.children[p.ChildID]
	if c == nil {
		c = &ChildOp{ID: p.ChildID, Inherited: b.inherited}
		b.children[p.ChildID], op.Children = c, append(op.Children, c)
	}
	c.update(&p, state)
	b.logTo(&op.Logs, LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Text: cmp.Or(p.Message, p.Summary), Value: b.e.Data})
	if op.Kind == SystemOp && !op.effect && state.Ended() {
		op.Error = p.Error
		op.end(b.e, statusOf(state == event.ChildFailed))
	}
	return op, nil
}

func (c *ChildOp) update(p *event.Child, state event.ChildState) {
	if state == event.ChildMerged {
		c.Merged = true
	} else {
		if state != event.ChildBlocked || c.State != state {
			c.InterruptIDs = nil
		}
		c.State = state
	}
	if state == event.ChildBlocked && p.InterruptID != "" && !slices.Contains(c.InterruptIDs, p.InterruptID) {
		c.InterruptIDs = append(c.InterruptIDs, p.InterruptID)
	}
	c.SessionID, c.Agent, c.Mode = cmp.Or(p.ChildSessionID, c.SessionID), cmp.Or(p.Agent, c.Agent), cmp.Or(p.Mode, c.Mode)
	c.Task, c.Summary, c.Error = cmp.Or(p.Task, c.Task), cmp.Or(p.Summary, c.Summary), cmp.Or(p.Error, c.Error)
}
