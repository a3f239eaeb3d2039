package runlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// runBuilder builds the run of one session from its lineage, by seq.
type runBuilder struct {
	run  *Run
	own  bool
	path pathCursor
	info projection.SessionInfo

	finder turnFinder
	meter  projection.Meter
	turns  map[*foundTurn]*Turn
	byID   map[ulid.ULID]*Turn

	// The newest ops by what later events name them by.
	calls    map[string]*Op // call ids
	keys     map[string]*Op // keys of effects and executions
	answers  map[string]*Op // groups and response ids
	waiting  map[string]*Op // interrupts and waits
	children map[string]*ChildOp
	steps    map[stepKey]*Op
	llm      *Op // that is under way
	last     *Op // that answered last, and whose step has not completed
	owner    map[*Op]*Turn
	inputs   map[*foundTurn]given // of exchanges that a turn took over

	// The event that is looked at.
	e         *event.Event
	turn      *Turn // nil outside
	inherited bool
	onPath    bool
}

// given is what a turn was given.
type given struct{ said, context []event.Message }

type stepKey struct {
	turn ulid.ULID
	step int
}

func newRunBuilder(session string, own bool, path []event.Stretch) *runBuilder {
	return &runBuilder{run: &Run{Session: session}, own: own, path: pathCursor{path}, turns: map[*foundTurn]*Turn{},
		byID: map[ulid.ULID]*Turn{}, calls: map[string]*Op{}, keys: map[string]*Op{}, answers: map[string]*Op{},
		waiting: map[string]*Op{}, children: map[string]*ChildOp{}, steps: map[stepKey]*Op{}, owner: map[*Op]*Turn{},
		inputs: map[*foundTurn]given{}}
}

func (b *runBuilder) add(e *event.Event) error {
	b.e, b.inherited, b.onPath = e, e.SessionID != b.run.Session || e.Inherited(), b.path.has(e.Seq)
	if err := projection.Info().Apply(&b.info, e); err != nil {
		return err
	}
	ended, err := b.finder.next(e)
	if err != nil {
		return err
	}
	var op *Op
	if !b.own || e.SessionID == b.run.Session {
		b.enter()
		op, err = b.take()
	}
	if err != nil {
		return fmt.Errorf("%s %d of session %q: %w", e.Type, e.Seq, e.SessionID, err)
	}
	err = b.meter.Read(e, b.inherited, func(c projection.Charge) { b.charge(op, c) })
	if ended {
		b.finder.end(e.Seq)
	}
	return err
}

// enter finds the turn of the event.
func (b *runBuilder) enter() {
	at := b.finder.turn
	if b.turn = nil; at == nil {
		return
	}
	t := b.turns[at]
	if t != nil && t.Orphaned && b.onPath {
		t = nil // the path went on from the exchange otherwise
	}
	if x := b.turns[at.input]; t == nil && x != nil {
		b.inputs[at.input] = given{slices.Clone(x.Input), slices.Clone(x.Context)}
		if x.Orphaned != b.onPath { // both are on the path, or neither
			t = x // the exchange becomes the turn that took it over
			delete(b.turns, at.input)
		}
	}
	if t == nil {
		if t = b.left(at); t == nil {
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

// left is a turn that begins with the event, with the input of the exchange that
// it took over, or that a turn took over which the head left. It is nil where the
// head moved into a turn of which nothing is here yet.
func (b *runBuilder) left(at *foundTurn) *Turn {
	if b.e.Type.Name() == event.HeadMoved {
		return nil
	}
	t := &Turn{From: at.start, Orphaned: !b.onPath, Inherited: b.inherited || b.e.Copied(), Started: b.e.Timestamp, Agent: b.meter.Agent}
	input, taken := b.inputs[at]
	if !taken {
		input = b.inputs[at.input]
	}
	t.Input, t.Context = slices.Clone(input.said), slices.Clone(input.context)
	return t
}

// take makes what the event says of it a part of the run, and gives the op that
// it belongs to.
func (b *runBuilder) take() (*Op, error) {
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
		return nil, b.bounds()
	case event.OpLogged:
		return b.logged()
	case event.CompactionTriggered:
		op := b.begin(SystemOp, e.ID.String(), "compaction")
		op.Request = e.Data
		op.end(e, OpOK)
		return op, nil
	case event.SessionStarted, event.SessionForked, event.HeadMoved:
		return nil, nil
	}
	if !e.Type.Upkeep() {
		b.log(LogLine{Seq: e.Seq, Time: e.Timestamp, Type: e.Type, Value: e.Data})
	}
	return nil, nil
}

// begin makes an op that begins with the event.
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

// drop takes an op out again, whose part another one plays.
func (b *runBuilder) drop(op *Op) {
	list := &b.run.Ops
	if t := b.owner[op]; t != nil {
		list = &t.Ops
	}
	*list = slices.DeleteFunc(*list, func(o *Op) bool { return o == op })
}

func (o *Op) end(e *event.Event, s OpStatus) { o.Ended, o.Status = e.Timestamp, s }

// ask adds to what an llm op was begun with.
func (o *Op) ask(data jsontext.Value) {
	if len(data) > 0 {
		o.requests = append(o.requests, data)
	}
}

// respond adds to what an llm op gave.
func (o *Op) respond(data jsontext.Value) {
	if len(data) > 0 {
		o.responses = append(o.responses, data)
	}
}

// bounds takes in the beginning or the end of a turn.
func (b *runBuilder) bounds() error {
	b.llm = nil
	if b.e.Type.Name() == event.TurnStarted {
		p, err := event.DecodeKept[event.TurnStart](b.e)
		b.turn.Agent = cmp.Or(p.Agent, b.turn.Agent)
		return err
	}
	p, err := event.DecodeKept[event.TurnCompletion](b.e)
	t := b.byID[p.TurnID]
	if p.TurnID.IsZero() || t == nil {
		t = b.turn
	}
	if t != nil {
		t.Status, t.StopReason, t.Error, t.Ended = p.Status, p.StopReason, p.Error, b.e.Timestamp
	}
	return err
}

// log adds a line to the turn.
func (b *runBuilder) log(line LogLine) {
	if b.turn == nil {
		b.run.Logs = append(b.run.Logs, line)
	} else {
		b.turn.Logs = append(b.turn.Logs, line)
	}
}

func (b *runBuilder) logged() (*Op, error) {
	p, err := event.DecodeKept[event.Op](b.e)
	if err != nil {
		return nil, err
	}
	line := LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Level: p.Level, Text: p.Text, Value: p.Value}
	op := b.named(p.OpID, p.ParentID)
	if op == nil {
		b.log(line)
		return nil, nil
	}
	op.Logs = append(op.Logs, line)
	return op, nil
}

// named is the op that one of some ids stands for, or nil.
func (b *runBuilder) named(ids ...string) *Op {
	for _, id := range ids {
		for _, ops := range []map[string]*Op{b.calls, b.keys, b.answers} {
			if op := ops[id]; op != nil && id != "" {
				return op
			}
		}
	}
	return nil
}

// charge accounts for what the event cost.
func (b *runBuilder) charge(op *Op, c projection.Charge) {
	a := Accounting{Seq: b.e.Seq, Time: b.e.Timestamp, Model: c.Model, Agent: c.Agent, Spend: c.Spend}
	t := b.turn
	b.run.Totals.Own = b.run.Totals.Own.Add(c.Spend)
	if op != nil {
		t = b.owner[op]
		op.Accounting = append(op.Accounting, a)
	}
	switch {
	case t != nil && op == nil:
		t.Accounting = append(t.Accounting, a)
		fallthrough
	case t != nil:
		t.Spend = t.Spend.Add(c.Spend)
	case op == nil:
		b.run.Accounting = append(b.run.Accounting, a)
	}
}

// done completes the run.
func (b *runBuilder) done() (*Run, error) {
	r := b.run
	r.Title, r.Agent, r.Fork, r.Started, r.Ended = b.info.Title, b.info.Agent, b.info.Fork, b.info.Started, b.info.Updated
	for op := range r.ops() {
		if err := op.close(); err != nil {
			return nil, err
		}
		r.Totals.count(op)
	}
	r.Status = OpOK
	for _, t := range r.Turns {
		t.settle()
		r.Totals.Turns++
		if !t.Orphaned {
			r.Status, r.Error = t.outcome(), t.Error
		}
	}
	return r, nil
}

// close writes what an llm op was begun with as one value, and so what it gave.
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
	switch op.Kind {
	case LLMOp:
		t.Responses++
	case ToolOp:
		t.Tools++
	}
	if op.Status == OpFailed {
		t.Failed++
	}
}

// settle decides how a turn ended that does not say so.
func (t *Turn) settle() {
	open := slices.ContainsFunc(t.Ops, func(o *Op) bool { return o.Status == OpOpen && o.Kind != SystemOp })
	if t.Status == "" && t.ID.IsZero() && t.Output != nil && !open {
		t.Status = event.TurnStatusCompleted
	}
}

func (t *Turn) outcome() OpStatus {
	switch t.Status {
	case "":
		return OpOpen
	case event.TurnStatusFailed:
		return OpFailed
	}
	return OpOK
}

// pathCursor says which of ascending seqs are on a path.
type pathCursor struct {
	path []event.Stretch // what is still to come
}

func (c *pathCursor) has(seq int64) bool {
	for len(c.path) > 0 && c.path[0].To < seq {
		c.path = c.path[1:]
	}
	return len(c.path) > 0 && c.path[0].From <= seq
}
