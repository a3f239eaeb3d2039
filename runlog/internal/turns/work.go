package turns

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
)

// IsWork reports whether an event extends the time of its turn: a message, or a part of an
// operation. Other records do not, because a program may write them the next morning, or
// before the next prompt: raw records, titles, settings, notes, context messages, compactions,
// tokens noted later, and the end of a turn that was interrupted.
func IsWork(e *event.Event) bool {
	if _, child := e.Type.ChildState(); child {
		return true
	}
	switch e.Type.Name() {
	case event.MessageAdded:
		return !e.IsContext()
	case event.TurnCompleted:
		p, err := event.DecodeKept[event.TurnCompletion](e)
		status := p.Status.Known()
		return err == nil && status != event.TurnStatusInterrupted && status != event.TurnStatusAborted
	case event.StepCompleted:
		p, err := event.DecodeKept[event.StepCompletion](e)
		return err == nil && !p.TurnID.IsZero() // without a turn it has tokens of another event, noted later
	case event.TurnStarted, event.TurnHibernated, event.TurnResumed, event.AbortRequested, event.ExternalInput,
		event.StepStarted, event.ToolStarted, event.ToolCompleted, event.EffectIntended, event.EffectCompleted,
		event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled, event.WaitStarted, event.WaitResolved:
		return true
	}
	return false
}

// Recorded returns the time that the turn took, if the event has it as the program measured it.
func Recorded(e *event.Event) (took time.Duration, ok bool) {
	var ms int64
	if e.Type.Name() == event.TurnCompleted {
		p, err := event.DecodeKept[event.TurnCompletion](e)
		ms = p.DurationMS
		return time.Duration(ms) * time.Millisecond, err == nil && ms > 0
	}
	if !mark.MayBeIn(e.Metadata, mark.TurnMS) {
		return 0, false
	}
	v, ok := e.MetadataValue(mark.TurnMS)
	if !ok || json.Unmarshal(v, &ms) != nil || ms <= 0 {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}
