package runlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// runBuilder makes the run of one session from the events of its lineage, by seq.
type runBuilder struct {
	run     *Run
	own     bool
	outline bool
	path    pathCursor
	info    projection.SessionInfo

	finder turnFinder
	meter  projection.Meter
	turns  map[*foundTurn]*Turn
	byID   map[ulid.ULID]*Turn

	// The newest ops by the ids that later events refer to.
	calls    map[string]*Op        // call ids
	early    map[string]event.Part // results before their calls, by call id
	keys     map[string]*Op        // keys of effects and tool executions
	answers  map[string]*Op        // groups and response ids
	waiting  map[string]*Op        // interrupts and waits
	reviewed map[string]*Op        // interrupts of effects
	cursors  map[string]*Op        // cursors of reviews
	pauses   map[string]*Pause     // by cursor
	children map[string]*ChildOp
	starts   map[ulid.ULID][2]string // the call id and the key of an event that starts an execution
	steps    map[stepKey]*Op
	llm      *Op // the open model call
	last     *Op // the op of the last answer, until its step completes
	ahead    *Op // the op of a completed step whose answer has not come yet
	owner    map[*Op]*Turn
	inputs   map[*foundTurn]turnInput // of exchanges that became turns

	leading []leadingContext

	heard time.Time // the newest message or start of a turn that an answer can follow
	late  time.Time // the newest result whose call has not come yet
	// external are the texts of external inputs, by input id.
	external map[string]string

	// The current event.
	e         *event.Event
	turn      *Turn // nil outside of any turn
	inherited bool
	onPath    bool
}

// turnInput is the input of a turn.
type turnInput struct{ messages, context []event.Message }

type stepKey struct {
	turn ulid.ULID
	step int
}

func newRunBuilder(session string, o Options, path []event.Stretch) *runBuilder {
	return &runBuilder{run: &Run{Session: session}, own: o.Own, outline: o.Outline, path: pathCursor{path}, turns: map[*foundTurn]*Turn{},
		byID: map[ulid.ULID]*Turn{}, calls: map[string]*Op{}, early: map[string]event.Part{}, keys: map[string]*Op{}, answers: map[string]*Op{},
		waiting: map[string]*Op{}, reviewed: map[string]*Op{}, cursors: map[string]*Op{}, pauses: map[string]*Pause{}, children: map[string]*ChildOp{}, starts: map[ulid.ULID][2]string{}, steps: map[stepKey]*Op{}, owner: map[*Op]*Turn{},
		inputs: map[*foundTurn]turnInput{}, external: map[string]string{}}
}

func (b *runBuilder) add(e *event.Event) error {
	b.e, b.inherited, b.onPath = e, e.SessionID != b.run.Session || e.Inherited(), b.path.has(e.Seq)
	if err := projection.Info().Apply(&b.info, e); err != nil {
		return err
	}
	before := b.finder.turn
	ended, err := b.finder.next(e)
	if err != nil {
		return err
	}
	if x := b.turns[before]; x != nil && !before.id.IsZero() && e.Type.Name() == event.TurnStarted {
		b.end(x, turnEnd{status: event.TurnStatusInterrupted})
	}
	var op *Op
	if !b.own || e.SessionID == b.run.Session {
		b.enter()
		op, err = b.fold()
	}
	if err != nil {
		return fmt.Errorf("%s %d of session %q: %w", e.Type, e.Seq, e.SessionID, err)
	}
	if name := e.Type.Name(); name == event.MessageAdded || name == event.TurnStarted {
		b.hear()
	}
	err = b.meter.Read(e, b.inherited, func(c projection.Charge) { b.charge(op, c) })
	if ended {
		b.finder.end(e.Seq)
	}
	return err
}

// hear notes the time of a message or the start of a turn. No answer follows a result
// before the call of the result.
func (b *runBuilder) hear() {
	at := event.Dated(b.e.Timestamp)
	if len(b.early) > 0 && slices.Contains(b.e.Broken(), event.OrphanResult) {
		b.late = at
		return
	}
	if len(b.early) == 0 && at.Before(b.late) {
		at = b.late
	}
	b.heard = at
}

// enter sets b.turn to the turn of the event, and adds a new turn to the run.
func (b *runBuilder) enter() {
	at := b.finder.turn
	if b.e.Type.Name() == event.HeadMoved {
		b.endLeading()
	}
	if b.turn = nil; at == nil {
		return
	}
	t := b.turns[at]
	if t != nil && t.Orphaned && b.onPath {
		t = nil // the path continues from the exchange in another turn
	}
	if x := b.turns[at.input]; t == nil && x != nil {
		b.inputs[at.input] = turnInput{slices.Clone(x.Input), slices.Clone(x.Context)}
		if x.Orphaned != b.onPath { // both are on the path, or neither
			t = x // the exchange becomes the turn
			delete(b.turns, at.input)
		}
	}
	if t == nil {
		if t = b.newTurn(at); t == nil {
			return
		}
		b.run.Turns = append(b.run.Turns, t)
	}
	b.turns[at] = t
	t.ID, t.Index, b.turn = at.id, at.index, t
	if !b.e.Type.Upkeep() && b.e.Type.Scope() != event.TreeScope {
		t.To, t.Ended = max(t.To, b.e.Seq), b.e.Timestamp
	}
	b.byID[t.ID] = t
}

// newTurn returns a turn that begins with the event. Its input is the input of the
// exchange that it took over. It is nil for a head_moved into a turn that the run
// does not have.
func (b *runBuilder) newTurn(at *foundTurn) *Turn {
	if b.e.Type.Name() == event.HeadMoved {
		return nil
	}
	t := &Turn{From: at.start, Orphaned: !b.onPath, Inherited: b.inherited || b.e.Copied(), Started: b.e.Timestamp, Agent: b.meter.Agent}
	input, ok := b.inputs[at]
	if !ok {
		input = b.inputs[at.input]
	}
	t.Input, t.Context = slices.Clone(input.messages), slices.Clone(input.context)
	return t
}

// fold adds the event to the run. It returns the op of the event, or nil.
func (b *runBuilder) fold() (*Op, error) {
	e := b.e
	if _, ok := e.Type.ChildState(); ok {
		return b.child()
	}
	switch e.Type.Name() {
	case event.MessageAdded:
		return b.message()
	case event.StepStarted, event.StepCompleted:
		return b.step()
	case event.ToolStarted, event.ToolCompleted:
		return b.tool()
	case event.EffectIntended, event.EffectCompleted:
		return b.effect()
	case event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled:
		return b.approval()
	case event.WaitStarted, event.WaitResolved:
		return b.wait()
	case event.TurnStarted, event.TurnCompleted:
		return nil, b.turnBounds()
	case event.AbortRequested:
		if err := b.abort(); err != nil {
			return nil, err
		}
	case event.TurnHibernated:
		return nil, b.hibernate()
	case event.TurnResumed:
		return nil, b.resume()
	case event.OpLogged:
		return b.logged()
	case event.CompactionTriggered:
		op := b.begin(SystemOp, e.ID.String(), "compaction")
		op.Request = b.content(e.Data)
		op.end(e, OpOK)
		return op, nil
	case event.ExternalInput:
		if err := b.externalInput(); err != nil {
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

// logLine is a line of the current event.
func (b *runBuilder) logLine() LogLine {
	return LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Value: b.e.Data}
}

// begin adds an op that begins with the event.
func (b *runBuilder) begin(kind OpKind, id, name string) *Op {
	op := &Op{ID: id, Kind: kind, Name: name, Status: OpOpen, Seq: b.e.Seq, Orphaned: !b.onPath, Started: b.e.Timestamp}
	b.owner[op] = b.turn
	if b.turn == nil {
		b.run.Ops = append(b.run.Ops, op)
	} else {
		b.turn.Ops = append(b.turn.Ops, op)
	}
	return op
}

// drop removes op: another op replaces it.
func (b *runBuilder) drop(op *Op) {
	list := &b.run.Ops
	if t := b.owner[op]; t != nil {
		list = &t.Ops
	}
	*list = slices.DeleteFunc(*list, func(o *Op) bool { return o == op })
}

func (o *Op) end(e *event.Event, s OpStatus) { o.Ended, o.Status = e.Timestamp, s }

// ask adds a payload to the request of an llm op.
func (o *Op) ask(data jsontext.Value) {
	if len(data) > 0 {
		o.requests = append(o.requests, data)
	}
}

// respond adds a payload to the response of an llm op.
func (o *Op) respond(data jsontext.Value) {
	if len(data) > 0 {
		o.responses = append(o.responses, data)
	}
}

// log adds a line to the turn, or to the run.
func (b *runBuilder) log(line LogLine) {
	if b.turn == nil {
		b.logTo(&b.run.Logs, line)
	} else {
		b.logTo(&b.turn.Logs, line)
	}
}

func (b *runBuilder) logged() (*Op, error) {
	p, err := event.DecodeKept[event.Op](b.e)
	if err != nil {
		return nil, err
	}
	line := LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Level: p.Level, Text: p.Text, Value: p.Value, Body: p.Body}
	op := b.opByID(p.OpID, p.ParentID)
	if op == nil {
		b.log(line)
		return nil, nil
	}
	b.logTo(&op.Logs, line)
	return op, nil
}

// opByID returns the op of the first id that has one, or nil.
func (b *runBuilder) opByID(ids ...string) *Op {
	for _, id := range ids {
		for _, ops := range []map[string]*Op{b.calls, b.keys, b.answers} {
			if op := ops[id]; op != nil && id != "" {
				return op
			}
		}
	}
	return nil
}

// charge adds a cost to the op, the turn or the run.
func (b *runBuilder) charge(op *Op, c projection.Charge) {
	t, list := b.turn, &b.run.Accounting
	if op != nil {
		t, list = b.owner[op], &op.Accounting
	} else if t != nil {
		list = &t.Accounting
	}
	b.run.Totals.Own = b.run.Totals.Own.Add(c.Spend)
	if t != nil {
		t.Spend = t.Spend.Add(c.Spend)
	}
	if b.outline {
		return
	}
	*list = append(*list, Accounting{Seq: b.e.Seq, Time: b.e.Timestamp, Model: c.Model, Agent: c.Agent, Spend: c.Spend})
}

// done returns the complete run.
func (b *runBuilder) done() (*Run, error) {
	r := b.run
	b.endLeading()
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

// pathCursor reports for ascending seqs whether they are on a path.
type pathCursor struct {
	path []event.Stretch // the rest of the path
}

func (c *pathCursor) has(seq int64) bool {
	for len(c.path) > 0 && c.path[0].To < seq {
		c.path = c.path[1:]
	}
	return len(c.path) > 0 && c.path[0].From <= seq
}
