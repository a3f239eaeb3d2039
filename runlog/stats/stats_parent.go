package stats

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// parentMeter gives the meter of a fork the open steps of its parent, and whether the
// parent's turn used tokens. It reads the parent only if the fork continues an open
// turn, and back to the start of the turn.
type parentMeter struct {
	ctx     context.Context
	log     *eventlog.Log
	session string
	forked  int64 // the seq of the session_forked
	done    bool
}

// before updates m before event e. The session's own events come in order.
func (p *parentMeter) before(e *event.Event, m *projection.Meter) error {
	if p.forked == 0 {
		p.forked, p.done = e.Seq, e.Type.Name() != event.SessionForked || e.Seq == 1
	}
	if p.done {
		return nil
	}
	if e.Type.Name() == event.TurnStarted {
		p.done = true
		return nil
	}
	if depends, err := dependsOnParent(e); err != nil || !depends {
		return err
	}
	p.done = true
	parent, err := p.open()
	m.Steps, m.Spent = parent.Steps, parent.Spent || m.Spent
	return err
}

// dependsOnParent reports whether the count of an event depends on an open turn or
// step.
func dependsOnParent(e *event.Event) (bool, error) {
	switch e.Type.Name() {
	case event.StepStarted, event.StepCompleted, event.TurnCompleted:
		return true, nil
	case event.MessageAdded:
		m, err := event.DecodeKept[struct {
			ResponseID string      `json:"response_id"`
			Group      string      `json:"group"`
			Usage      event.Usage `json:"usage"`
		}](e)
		counts := e.Cost > 0 || !m.Usage.IsZero()
		return counts && m.Group == "" && m.ResponseID == "", err
	}
	return false, nil
}

// open returns a meter at the end of the shared prefix.
func (p *parentMeter) open() (m projection.Meter, err error) {
	var from int64
	for e, err := range p.log.Read(p.ctx, p.session, eventlog.Between(0, p.forked-1).Backward().Bare()) {
		if err != nil {
			return m, err
		}
		if from = e.Seq; e.Type.Name() == event.TurnStarted || e.Type.Name() == event.TurnCompleted {
			break
		}
	}
	for e, err := range p.log.Read(p.ctx, p.session, eventlog.Between(from, p.forked-1)) {
		if err == nil {
			err = m.Read(e.Effective(), true, nil)
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}
