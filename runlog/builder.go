package runlog

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/internal/estimate"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// runBuilder makes the run of one session from the events of its lineage, by seq. It gives
// each event to the builder of its part of the run.
type runBuilder struct {
	*current
	own   bool
	path  turns.Path
	info  projection.SessionInfo
	meter projection.Meter

	turns    turnBuilder
	ops      *opIndex
	models   *modelCalls
	tools    toolCalls
	effects  effects
	waits    waits
	children children
}

func newRunBuilder(session string, o Options, path []event.Stretch) *runBuilder {
	at := &current{run: &Run{Session: session}, outline: o.Outline, owner: map[*Op]*Turn{}, guess: estimate.Estimator{Cost: o.Estimate}}
	ops := newOpIndex()
	models := &modelCalls{current: at, opIndex: ops, steps: map[stepKey]*Op{}}
	return &runBuilder{
		current: at, own: o.Own, path: turns.NewPath(path), ops: ops, models: models,
		turns:    newTurnBuilder(at),
		tools:    toolCalls{current: at, opIndex: ops, early: map[string]event.Part{}},
		effects:  effects{current: at, opIndex: ops, models: models},
		waits:    waits{current: at, opIndex: ops, reviewed: map[string]*Op{}, cursors: map[string]*Op{}, pauses: map[string]*Pause{}},
		children: children{current: at, opIndex: ops, runs: map[string]*ChildOp{}},
	}
}

func (b *runBuilder) add(e *event.Event) error {
	b.e, b.inherited, b.onPath = e, e.SessionID != b.run.Session || e.Inherited(), b.path.Has(e.Seq)
	if err := projection.Info().Apply(&b.info, e); err != nil {
		return err
	}
	ended, err := b.turns.next()
	if err != nil {
		return err
	}
	var op *Op
	if !b.own || e.SessionID == b.run.Session {
		b.turns.enter(b.meter.Agent)
		op, err = b.fold()
	}
	if err != nil {
		return fmt.Errorf("%s %d of session %q: %w", e.Type, e.Seq, e.SessionID, err)
	}
	if name := e.Type.Name(); name == event.MessageAdded || name == event.TurnStarted {
		b.models.hear(len(b.tools.early) > 0)
	}
	err = b.meter.Read(e, b.inherited, func(c projection.Charge) { b.charge(op, c) })
	if cost, ok := estimate.Reported(e); ok && !b.inherited {
		b.run.Totals.Reported = cost
	}
	if ended {
		b.turns.finder.End(e.Seq)
	}
	return err
}

// fold adds the event to the run. It returns the op of the event, or nil.
func (b *runBuilder) fold() (*Op, error) {
	e := b.e
	if _, ok := e.Type.ChildState(); ok {
		return b.children.fold()
	}
	switch e.Type.Name() {
	case event.MessageAdded:
		return b.message()
	case event.StepStarted, event.StepCompleted:
		return b.models.step()
	case event.ToolStarted, event.ToolCompleted:
		return b.tools.fold()
	case event.EffectIntended, event.EffectCompleted:
		return b.effects.fold()
	case event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled:
		return b.waits.approval()
	case event.WaitStarted, event.WaitResolved:
		return b.waits.wait()
	case event.TurnStarted, event.TurnCompleted:
		b.models.open = nil
		return nil, b.turns.bounds()
	case event.AbortRequested:
		if err := b.turns.abort(); err != nil {
			return nil, err
		}
	case event.TurnHibernated:
		return nil, b.waits.hibernate()
	case event.TurnResumed:
		return nil, b.waits.resume()
	case event.OpLogged:
		return b.logged()
	case event.CompactionTriggered:
		op := b.begin(SystemOp, e.ID.String(), "compaction")
		op.Request = b.content(e.Data)
		op.end(e, OpOK)
		return op, nil
	case event.ExternalInput:
		if err := b.turns.externalInput(); err != nil {
			return nil, err
		}
	case event.SessionStarted, event.SessionForked, event.HeadMoved:
		return nil, nil
	}
	if !e.Type.Upkeep() {
		b.log(b.logLine())
	}
	return nil, nil
}

// message folds a message: an input, an answer of an llm op, or tool results.
func (b *runBuilder) message() (*Op, error) {
	m, err := b.read()
	if err != nil {
		return nil, err
	}
	if !b.e.IsContext() {
		b.turns.lead(b.turn)
	}
	var op *Op
	if m.Role == event.Assistant {
		op = b.models.answer(&m)
		b.turns.output(&m)
	} else {
		b.turns.input(&m)
	}
	for _, p := range m.ToolResults() {
		if err := b.tools.result(&p); err != nil {
			return nil, err
		}
	}
	for _, p := range m.ToolCalls() {
		if err := b.tools.call(&p); err != nil {
			return nil, err
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

func (b *runBuilder) logged() (*Op, error) {
	p, err := event.DecodeKept[event.Op](b.e)
	if err != nil {
		return nil, err
	}
	line := LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Level: p.Level, Text: p.Text, Value: p.Value, Body: p.Body}
	op := b.ops.find(p.OpID, p.ParentID)
	if op == nil {
		b.log(line)
		return nil, nil
	}
	b.logTo(&op.Logs, line)
	return op, nil
}

// done returns the complete run.
func (b *runBuilder) done() (*Run, error) {
	r := b.run
	b.turns.endLeading()
	r.Title, r.Agent, r.Fork, r.Started, r.Ended = b.info.Title, b.info.Agent, b.info.Fork, b.info.Started, b.info.Updated
	for op := range r.ops() {
		if err := op.close(); err != nil {
			return nil, err
		}
		r.Totals.count(op)
	}
	r.Totals.Responses = r.Totals.Own.Responses
	r.Status = OpOK
	for _, t := range r.Turns {
		t.Spend = estimate.WithoutDebt(t.Spend)
		t.close()
		t.infer()
		if len(t.Input) == 0 && t.external != "" {
			t.Input = []event.Message{b.said(&event.Message{Role: event.User, Parts: []event.Part{event.Text(t.external)}})}
		}
		r.Totals.Turns++
		if !t.Orphaned {
			r.Status, r.Error = t.outcome(), t.Error
		}
	}
	return r, nil
}

// close sets Request and Response of an llm op to arrays.
func (o *Op) close() (err error) {
	if o.Kind == LLMOp && len(o.requests) > 0 {
		if o.Request, err = json.Marshal(o.requests, jsontext.PreserveRawStrings(true)); err != nil {
			return err
		}
	}
	if o.Kind == LLMOp && len(o.responses) > 0 {
		o.Response, err = json.Marshal(o.responses, jsontext.PreserveRawStrings(true))
	}
	return err
}

func (t *Totals) count(op *Op) {
	if op.Kind == ToolOp {
		t.Tools++
	}
	if op.Status == OpFailed {
		t.Failed++
	}
}
