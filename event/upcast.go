package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Upcaster converts the payload of one type version to the next version, on read.
// The stored bytes do not change.
type Upcaster struct {
	// From and To are types, for example "order_placed" and "order_placed/2".
	From, To Type
	// Cast makes the new payload. It must be pure.
	Cast func(data jsontext.Value) (jsontext.Value, error)
}

// Upcast applies upcasters to e until none fits, as reading through a Log that
// has them does. A redacted event has no payload to cast, and stays as it is.
func (e *Event) Upcast(upcasters ...Upcaster) error {
	if e == nil {
		return nilArgument("the event of Upcast")
	}
	if e.Redacted() {
		return nil
	}
	for range upcasters {
		before := e.Type
		for _, u := range upcasters {
			if u.From != e.Type {
				continue
			}
			if u.Cast == nil {
				return nilArgument(fmt.Sprintf("Cast of the upcaster from %s to %s", u.From, u.To))
			}
			data, err := u.Cast(e.Data.Clone())
			if err != nil {
				return fmt.Errorf("upcast event %d of session %q from %s to %s: %w", e.Seq, e.SessionID, u.From, u.To, err)
			}
			e.Type, e.Data = u.To, data
			break
		}
		if e.Type == before {
			break
		}
	}
	return nil
}
