package fork

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// backward yields the events of the path that ends at seq, newest first, and
// reads no more than it yields.
func backward(ctx context.Context, log *eventlog.Log, session string, seq int64) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		for at := seq; at > 0; {
			next := int64(0)
			for e, err := range log.Read(ctx, session, eventlog.Between(0, at).Backward()) {
				if !yield(e, err) || err != nil {
					return
				}
				if to, moved, err := moveOf(&e); err != nil {
					yield(eventlog.Event{}, err)
					return
				} else if moved {
					next = to
					break
				}
			}
			at = next
		}
	}
}

// moveOf is where a head_moved went.
func moveOf(e *eventlog.Event) (to int64, moved bool, err error) {
	m, moved, err := e.HeadMove()
	if err == nil && moved && (m.To < 0 || m.To >= e.Seq) {
		err = &eventlog.CorruptError{Session: e.SessionID, Offset: -1, Seq: e.Seq, Cause: eventlog.ErrInvalidTree}
	}
	return m.To, moved, err
}

// structure is what of a payload is left when it is redacted.
func structure(e *eventlog.Event) jsontext.Value {
	if e.Redacted() {
		return e.Kept()
	}
	return e.Data
}

// decodeStructure reads members of e's payload that redaction keeps.
func decodeStructure(e *eventlog.Event, into any) error {
	if err := json.Unmarshal(structure(e), into); err != nil {
		return &eventlog.CorruptError{Session: e.SessionID, Offset: -1, Seq: e.Seq, Cause: err}
	}
	return nil
}
