package records

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/convlog/convlog/event"
)

// Event makes an event of a payload with a part of the record: its metadata say that it
// is the part-th event of the record. The payload may break rules of conversation, which
// a lenient append marks; any other invalid payload is an error.
func (r *Record) Event(part int, p event.Payload) (event.Event, error) {
	return r.EventOf(p, r.Origin(part))
}

// EventOf makes the event of a payload with an origin, like Event.
func (r *Record) EventOf(p event.Payload, from Origin) (event.Event, error) {
	e := event.New(p)
	if err := event.Validate(p); err != nil && !Acceptable(p) {
		return e, err
	}
	return e, r.mark(&e, from)
}

// Raw makes an event whose data are the record's own bytes. It is the part-th event of
// the record.
func (r *Record) Raw(t event.Type, part int) (event.Event, error) {
	e := event.Event{Type: t, Data: r.Value.Clone()}
	return e, r.mark(&e, r.Whole(part))
}

// mark adds the origin to an event's metadata.
func (r *Record) mark(e *event.Event, from Origin) error {
	if r.Repaired {
		if err := e.SetMetadata("repaired", []string{"invalid_unicode"}); err != nil {
			return err
		}
	}
	value, err := from.value()
	if err != nil {
		return err
	}
	return e.SetMetadata(OriginKey, value)
}

// Located adds the record's file, line and offset to an error.
func (r *Record) Located(err error) error {
	return fmt.Errorf("%s:%d: record at byte %d: %w", r.Source, r.Line, r.Offset, err)
}

// RawType is the type of raw events for records of a kind. A kind that is not valid
// in a type becomes "other".
func RawType(format, kind string) event.Type {
	if len(kind) > 100 || strings.ContainsFunc(kind, unicode.IsControl) {
		kind = "other"
	}
	return event.Type(format + ":" + kind)
}

// Acceptable reports whether a lenient append accepts the payload.
func Acceptable(p event.Payload) bool {
	err := event.Validate(p)
	if err == nil {
		return true
	}
	rule, ok := errors.AsType[event.Rule](err)
	return ok && rule.Conversation()
}
