package interop

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/convlog/convlog/event"
)

// Event makes an event of a payload. The event's metadata say that it is the
// part-th event of the record. The payload may break rules of conversation, which a
// lenient append marks; any other invalid payload is an error.
func (r *Record) Event(part int, p event.Payload) (event.Event, error) {
	e := event.New(p)
	if err := event.Validate(p); err != nil {
		if _, ok := event.ConversationRule(err); !ok {
			return e, err
		}
	}
	return e, r.mark(&e, part)
}

// Raw makes an event whose data are the record's own bytes.
func (r *Record) Raw(t event.Type) (event.Event, error) {
	e := event.Event{Type: t, Data: r.Value.Clone()}
	return e, r.mark(&e, 0)
}

// mark adds the origin to an event's metadata.
func (r *Record) mark(e *event.Event, part int) error {
	if r.Repaired {
		if err := e.SetMetadata("repaired", []string{"invalid_unicode"}); err != nil {
			return err
		}
	}
	origin := r.Origin(part)
	value, err := origin.value()
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
