package codex

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// shape is the shape of a record's event. The type of an event depends on the records
// before it, so a record has all the types that its event can have.
func (im *importer) shape(l *line) func() sessions.Shape {
	return func() sessions.Shape {
		if l.kind == itemKind && l.isObject() {
			m, ok, err := im.message(l.payload, "", nil)
			if err != nil || !ok || isEmptyReasoning(&m) {
				return sessions.ShapeOf(nil, l.rawType())
			}
			return sessions.ShapeOf(m, l.rawType())
		}
		return sessions.Shape{Types: append(l.types(), l.rawType())}
	}
}

// types are the types of the events that a record other than an item can become.
func (l *line) types() []event.Type {
	switch l.kind {
	case metaKind:
		return []event.Type{event.SessionStarted, event.SessionUpdated}
	case "turn_context":
		return []event.Type{event.SessionUpdated}
	case "compacted":
		return []event.Type{event.CompactionTriggered}
	case eventKind:
		return l.eventTypes()
	}
	return nil
}

// eventTypes are the types of the events that an event_msg can become.
func (l *line) eventTypes() []event.Type {
	switch l.text("type") {
	case "task_started", "turn_started":
		return []event.Type{event.TurnStarted}
	case "task_complete", "turn_complete", "turn_aborted":
		return []event.Type{event.TurnCompleted}
	case "token_count":
		return []event.Type{event.StepCompleted}
	case "thread_rolled_back":
		return []event.Type{event.HeadMoved}
	case "thread_settings_applied", "thread_name_updated":
		return []event.Type{event.SessionUpdated}
	case "collab_agent_spawn_end", "sub_agent_activity":
		return []event.Type{event.ChildStarted.Type(), event.ChildFailed.Type()}
	case "entered_review_mode":
		return []event.Type{event.ExternalInput}
	}
	return nil
}
