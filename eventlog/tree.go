package eventlog

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// Fork is the payload of session_forked, the first event of a fork: the events
// of the parent up to Seq are the fork's own past.
type Fork struct {
	// Parent is the parent's session id.
	Parent string `json:"parent"`
	// Seq, EventID and Hash are those of the parent's event at the fork point.
	// Seq 0, with neither id nor hash, shares nothing.
	Seq     int64     `json:"seq"`
	EventID ulid.ULID `json:"event_id,omitzero"`
	Hash    Hash      `json:"hash"`
	Label   string    `json:"label,omitzero"`
	Reason  string    `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewSessionForked makes a session_forked. ErrInvalidTree says what of the fork
// point is missing.
func NewSessionForked(f Fork) (Event, error) { return NewEvent(f) }

// Fork reads a session_forked; ok and err are as for Message.
func (e *Event) Fork() (f Fork, ok bool, err error) { return decode[Fork](e, SessionForked) }

// EventType is session_forked.
func (f Fork) EventType() Type { return SessionForked }

func (f Fork) check() error {
	if err := checkSessionID(f.Parent); err != nil {
		return fmt.Errorf("%w: parent is %q: %w", ErrInvalidTree, clip(f.Parent), err)
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

func (f Fork) needs() []Digest { return nil }

// HeadMove is the payload of head_moved: the path goes on from another event.
type HeadMove struct {
	// To is the lineage seq of the event that the path goes on from; 0 is the
	// empty path.
	To     int64  `json:"to"`
	Label  string `json:"label,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewHeadMoved makes a head_moved. A negative target is ErrInvalidTree.
func NewHeadMoved(h HeadMove) (Event, error) { return NewEvent(h) }

// HeadMove reads a head_moved; ok and err are as for Message.
func (e *Event) HeadMove() (h HeadMove, ok bool, err error) { return decode[HeadMove](e, HeadMoved) }

// Parent is the seq of the event that e goes on from in the tree: of the one
// before it, or of where a head_moved goes; 0 is the start. A head_moved to what
// is not before it is a *CorruptError and matches ErrInvalidTree.
func (e *Event) Parent() (int64, error) {
	if e.Type.Name() != HeadMoved {
		return e.Seq - 1, nil
	}
	copied := *e // only a head_moved goes to the heap
	m, _, err := copied.HeadMove()
	if err != nil {
		return 0, err
	}
	if m.To < 0 || m.To >= e.Seq {
		cause := fmt.Errorf("%w: %w: to is %d", ErrInvalidTree, errMoveTo, m.To)
		return 0, &CorruptError{Session: e.SessionID, Offset: -1, Seq: e.Seq, Cause: cause}
	}
	return m.To, nil
}

// EventType is head_moved.
func (h HeadMove) EventType() Type { return HeadMoved }

func (h HeadMove) check() error {
	if h.To < 0 {
		return fmt.Errorf("%w: to is %d", ErrInvalidTree, h.To)
	}
	return requireExtra(h.Extra)
}

func (h HeadMove) needs() []Digest { return nil }
