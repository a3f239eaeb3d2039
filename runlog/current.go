package runlog

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/internal/estimate"
)

// current is the run that is made, and the event that is folded. All builders of a run
// share it.
type current struct {
	run     *Run
	outline bool
	owner   map[*Op]*Turn // nil for an op outside of any turn
	guess   estimate.Estimator

	e         *event.Event
	turn      *Turn // nil outside of any turn
	inherited bool
	onPath    bool
}

// logLine is a line of the current event.
func (b *current) logLine() LogLine {
	return LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Value: b.e.Data}
}

// begin adds an op that begins with the event.
func (b *current) begin(kind OpKind, id, name string) *Op {
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
func (b *current) drop(op *Op) {
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

func statusOf(failed bool) OpStatus {
	if failed {
		return OpFailed
	}
	return OpOK
}

// log adds a line to the turn, or to the run.
func (b *current) log(line LogLine) {
	if b.turn == nil {
		b.logTo(&b.run.Logs, line)
	} else {
		b.logTo(&b.turn.Logs, line)
	}
}

// charge adds a cost to the op, the turn or the run.
func (b *current) charge(op *Op, c projection.Charge) {
	b.guess.Add(b.e, &c)
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
