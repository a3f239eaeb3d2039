package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// The types of StoreNote. Only the log's own packages append them.
const (
	removed    Type = "removed"
	retired    Type = "retired"
	noteErased Type = "erased"
	held       Type = "held"
	released   Type = "released"
)

// StoreNote is the payload of removed, retired, erased, held and released. The events are in the
// session convlog:store, because a removed session has no events of its own.
// Functions of packages upkeep/erase and upkeep/retire write them.
type StoreNote struct {
	// Type is the type of the event: "removed", "retired", "erased", "held" or "released". It is not part
	// of the data.
	Type Type `json:"-"`

	// Sessions has a mark for each session that was removed, retired or held, or that has erased events. A mark is a
	// salted hash of the session's id (docs/FORMAT.md, chapter 7): the ids are not stored.
	Sessions []string `json:"sessions,omitzero"`
	// Holds are the ids of the held events that a released event ends.
	Holds []ulid.ULID `json:"holds,omitzero"`
	// By is the person or program that removed, retired, held or released.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

func (n *StoreNote) setType(t Type) { n.Type = t.Name() }

// EventType is the type of the note.
func (n StoreNote) EventType() Type { return n.Type }

// Validate applies the rules of StoreNote that need no other event.
func (n StoreNote) Validate() error {
	switch {
	case n.Type == released && len(n.Holds) == 0:
		return fmt.Errorf("%w: holds are missing", ErrInvalidPayload)
	case n.Type != released && len(n.Sessions) == 0:
		return fmt.Errorf("%w: sessions are missing", ErrInvalidPayload)
	case n.Type == held && n.Reason == "":
		return fmt.Errorf("%w: a hold needs a reason", ErrInvalidPayload)
	}
	return firstError(requireOneOf("type", n.Type, removed, retired, noteErased, held, released), requireExtra(n.Extra))
}
