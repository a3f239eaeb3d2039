package flowtest

import (
	"bytes"
	"slices"
	"sort"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/replay/replaytest"
)

// notCompared are events of runners and of others. They depend on where a run was
// interrupted, not on the agent.
var notCompared = []event.Type{event.RunClaimed, event.RunReleased, event.TurnHibernated, event.TurnResumed,
	event.ProjectionSnapshotted, event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled, event.WaitResolved,
	event.AbortRequested, event.ExternalInput, event.SessionUpdated, event.SessionForked, event.Redacted,
	event.AccountingFlushed, event.OpLogged}

// structural reports whether an event is compared. Events of children are not: the run has
// copies of the recorded ones.
func structural(e *event.Event) bool {
	_, child := e.Type.ChildState()
	return !child && !slices.Contains(notCompared, e.Type.Name())
}

// compareLogs returns the first difference between the recorded events and the events of
// the run.
func (p *player) compareLogs(got []event.Event) (*replaytest.Divergence, error) {
	o := p.options.Compare
	o.IgnoreMetadata = true // of the context of the recorded program
	want, err := p.comparable(p.tape.events())
	if err != nil {
		return nil, err
	}
	have, err := p.comparable(got)
	if err != nil {
		return nil, err
	}
	want, have = unequal(want, have)
	return replaytest.Diverges(replay.Of(want...), replay.Of(have...), o)
}

// unequal leaves out the pairs of equal events. A compaction needs all events: it names
// them by their seqs.
func unequal(a, b []event.Event) (x, y []event.Event) {
	if slices.ContainsFunc(a, func(e event.Event) bool { return e.Type.Name() == event.CompactionTriggered }) {
		return a, b
	}
	n := min(len(a), len(b))
	for i := range n {
		if a[i].Type != b[i].Type || a[i].Cost != b[i].Cost || !bytes.Equal(a[i].Data, b[i].Data) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	return append(x, a[n:]...), append(y, b[n:]...)
}

// events are the recorded events of the turns that began.
func (t *tape) events() (list []event.Event) {
	for _, x := range t.items {
		if x.event != nil {
			list = append(list, *x.event)
			continue
		}
		list = append(list, x.turn.events...)
	}
	return list
}

// comparable are events without members that depend on where a run was interrupted.
func (p *player) comparable(events []event.Event) (list []event.Event, err error) {
	var seqs []int64
	for i := range events {
		e := events[i]
		e.SessionID = p.tape.session // a part may be of the parent of a fork
		if !structural(&e) {
			continue
		}
		switch e.Type.Name() {
		case event.TurnStarted:
			err = rewrite(&e, func(t *event.TurnStart) { t.Version = "" })
		case event.TurnCompleted:
			err = rewrite(&e, plainEnd)
		case event.StepStarted:
			err = rewrite(&e, func(s *event.StepStart) { s.Seen = 0 })
		case event.HeadMoved:
			err = rewrite(&e, func(m *event.HeadMove) { m.To = p.position(seqs, m.To) })
		case event.CompactionTriggered:
			err = rewrite(&e, func(c *event.Compaction) { c.Covers.To = p.position(seqs, c.Covers.To) })
		}
		if err != nil {
			return nil, err
		}
		list, seqs = append(list, e), append(seqs, e.Seq)
	}
	return list, nil
}

// plainEnd removes the parts of an aborted turn that only a living runner writes.
func plainEnd(c *event.TurnCompletion) {
	if c.Status == event.TurnStatusAborted {
		c.Steps, c.Usage = 0, event.Usage{}
	}
}

// position is a seq that both logs have: of an event before the first turn, or else the
// negative place of the last compared event up to seq.
func (p *player) position(seqs []int64, seq int64) int64 {
	if n := sort.Search(len(seqs), func(i int) bool { return seqs[i] > seq }); n > 0 {
		return -int64(n)
	}
	return min(seq, p.tape.through.Seq)
}

// lastUpTo is the last compared event up to a seq.
func (p *player) lastUpTo(seqs []int64, seq int64) int64 {
	if i := sort.Search(len(seqs), func(i int) bool { return seqs[i] > seq }); i > 0 {
		return seqs[i-1]
	}
	return min(seq, p.tape.through.Seq)
}

// rewrite changes the payload of an event.
func rewrite[P event.Payload](e *event.Event, change func(*P)) error {
	payload, ok, err := event.Decode[P](e)
	if !ok || err != nil {
		return err
	}
	change(&payload)
	changed := event.New(payload)
	e.Data = changed.Data
	return nil
}

// atEvent is the divergence of an event: at the effect before or after which it is.
func (p *player) atEvent(d *replaytest.Divergence) *DivergenceError {
	t := p.tape.turnOf(d.Seq())
	x := &DivergenceError{Session: p.tape.session, Seq: d.Seq(), Type: d.Type(), Member: d.Member, Recorded: orNothing(d.RecordedValue), Got: orNothing(d.GotValue)}
	switch {
	case d.Got == nil:
		x.Member, x.Recorded, x.Got = "end", string(d.Type()), "the end of the run"
	case d.Recorded == nil:
		x.Member, x.Recorded, x.Got = "end", "the end of the recording", string(d.Type())
		x.Seq, x.Type = p.tape.lastSeq(), ""
		t = p.tape.turnOf(x.Seq)
	}
	if t == nil {
		return x
	}
	x.Turn, x.Index = t.id, t.start.Index
	for n := range t.count {
		if s := t.steps[n]; s != nil && x.Seq <= s.lastSeq() && len(s.effects) > 0 {
			x.Ordinal, x.Kind, x.Name = s.effects[0].ordinal, s.kind(), s.name()
			break
		}
	}
	return x
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return shorten(value)
}

// lastSeq is the seq of the newest record of the step.
func (s *step) lastSeq() int64 {
	last := s.first
	for _, x := range s.effects {
		if x.done != nil {
			last = max(last, x.done.Seq)
		}
	}
	return last
}

// turnOf is the turn that has an event, nil if no turn has it.
func (t *tape) turnOf(seq int64) (found *recordedTurn) {
	for _, x := range t.items {
		if x.turn != nil && x.turn.first <= seq {
			found = x.turn
		}
	}
	return found
}

// lastSeq is the seq of the newest event that is compared.
func (t *tape) lastSeq() (seq int64) {
	for _, e := range t.events() {
		seq = max(seq, e.Seq)
	}
	return seq
}
