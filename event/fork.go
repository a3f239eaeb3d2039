package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/line"
)

// Fork is the payload of session_forked, the first event of a fork: the parent's
// events up to Seq are the fork's past.
type Fork struct {
	// Parent is the parent's session id.
	Parent string `json:"parent"`
	// Seq, EventID and Hash identify the parent's event at the fork point. Seq 0,
	// without id and hash, shares nothing.
	Seq     int64     `json:"seq"`
	EventID ulid.ULID `json:"event_id,omitzero"`
	Hash    Hash      `json:"hash"`
	Label   string    `json:"label,omitzero"`
	Reason  string    `json:"reason,omitzero"`
	// Child, if set, says that the fork is the session of a child run, not a branch.
	Child ForkChild `json:"child,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// ForkChild names the child run of a fork, as in Child.
type ForkChild struct {
	ChildID string `json:"child_id,omitzero"`
	CallID  string `json:"call_id,omitzero"`
}

// EventType is session_forked.
func (f Fork) EventType() Type { return SessionForked }

// Validate refuses a fork point that is not complete, with ErrInvalidTree.
func (f Fork) Validate() error {
	if err := line.CheckName(f.Parent, line.MaxSession); err != nil {
		return fmt.Errorf("%w: parent is %q: %w", ErrInvalidTree, line.Clip(f.Parent), err)
	}
	shared := f.Seq > 0
	switch {
	case f.Seq < 0:
		return fmt.Errorf("%w: seq is %d", ErrInvalidTree, f.Seq)
	case shared == f.EventID.IsZero():
		return fmt.Errorf("%w: event_id is %v for seq %d", ErrInvalidTree, f.EventID, f.Seq)
	case shared == (f.Hash == Hash{}):
		return fmt.Errorf("%w: hash is %v for seq %d", ErrInvalidTree, f.Hash, f.Seq)
	}
	return requireExtra(f.Extra)
}

// Point is the head of the parent at the fork point.
func (f Fork) Point() Head { return Head{Seq: f.Seq, Hash: f.Hash} }

// HeadMove is the payload of head_moved: the active path continues after another
// event.
type HeadMove struct {
	// To is the seq of the event that the path continues after, anywhere in the
	// lineage; 0 is the empty path.
	To     int64  `json:"to"`
	Label  string `json:"label,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is head_moved.
func (h HeadMove) EventType() Type { return HeadMoved }

// Validate refuses a negative target, with ErrInvalidTree.
func (h HeadMove) Validate() error {
	if h.To < 0 {
		return fmt.Errorf("%w: to is %d", ErrInvalidTree, h.To)
	}
	return requireExtra(h.Extra)
}
