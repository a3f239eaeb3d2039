package runlog

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// parentMeter gives the meter of a fork what the lineage before it left open: the
// steps under way and whether the turn spent anything. It reads that only for a
// fork that goes on inside of a turn, and back to the beginning of the turn.
type parentMeter struct {
	ctx     context.Context
	log     *eventlog.Log
	session string
	forked  int64 // the seq of the session_forked
	done    bool
}

// before brings m up to e, one of the session's own events, which come in order.
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
	if asks, err := asksParent(e); err != nil || !asks {
		return err
	}
	p.done = true
	left, err := p.open()
	m.Steps, m.Spent = left.Steps, left.Spent || m.Spent
	return err
}

// asksParent reports whether it depends on a turn or a step under way what is
// counted for an event.
func asksParent(e *event.Event) (bool, error) {
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

// open is a meter at the end of what is shared.
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
