// Package storenotes reads and writes the notes of a store: the session Session,
// whose events say which sessions were removed or retired, by whom and why, which have erased
// events, and which are on hold. An import leaves out a removed session, and looks for copies of erased events. A session on hold is not erased.
//
// A note names a session by a mark: a salt, a dot, and 32 hex digits of a hash of the salt and
// the id. So the ids of removed sessions are not stored. The marks of a store have one salt,
// and marks that a copy brought have the salt of their store.
//
// A mark says nothing about a session that exists: a removal may have been interrupted, and
// a session may be created again.
package storenotes

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Session is the session with the notes.
const Session = engine.StoreSession

// hash is a part of the HMAC-SHA-256 of an id, with the salt as the key.
type hash [16]byte

// Notes are the notes of a store.
type Notes struct {
	own   string // the salt of new marks
	head  event.Head
	marks map[string]map[hash]*session // by salt
	holds map[ulid.ULID]*hold
	lost  []*hold // on all sessions, for the lost notes
}

// session is what the notes say of a session.
type session struct {
	removed bool
	erased  bool // some of its events are
	holds   []*hold
}

// Hold is a hold on a session that is not released.
type Hold struct {
	ID         ulid.ULID // of the held event
	Time       time.Time
	By, Reason string
	// Lost says that the event is a lost note, which may have been a hold on any session.
	Lost bool
}

// lostReason is the reason of a hold for a lost note.
const lostReason = "a note of the store was lost; it may have been a hold on any session"

type hold struct {
	Hold
	released bool
}

// Load reads the notes of a log's store. They are empty until the first note is written.
func Load(ctx context.Context, log *eventlog.Log) (*Notes, error) {
	n := &Notes{marks: map[string]map[hash]*session{}, holds: map[ulid.ULID]*hold{}}
	for e, err := range log.Read(ctx, Session, eventlog.All()) {
		if errors.Is(err, eventlog.ErrNotFound) {
			break
		}
		if err == nil {
			err = n.add(&e)
		}
		if err != nil {
			return nil, fmt.Errorf("read the notes of the store: %w", err)
		}
	}
	return n, nil
}

func (n *Notes) add(e *event.Event) error {
	n.head = e.Head()
	if e.Type.Name() == event.Lost {
		h := &hold{Hold: Hold{ID: e.ID, Time: e.Timestamp, Reason: lostReason, Lost: true}}
		n.holds[e.ID], n.lost = h, append(n.lost, h)
	}
	if !engine.IsNote(e.Type) {
		return nil
	}
	note, err := event.DecodeKept[event.StoreNote](e)
	if err != nil {
		return err
	}
	for _, id := range note.Holds {
		if h := n.holds[id]; h != nil {
			h.released = true
		}
	}
	var held *hold
	if note.Type == engine.Held {
		held = &hold{Hold: Hold{ID: e.ID, Time: e.Timestamp, By: note.By, Reason: note.Reason}}
		n.holds[e.ID] = held
	}
	for _, m := range note.Sessions {
		s := n.session(m)
		switch {
		case s == nil:
		case held != nil:
			s.holds = append(s.holds, held)
		case note.Type == engine.Erased:
			s.erased = true
		default:
			s.removed = true
		}
	}
	return nil
}

// session is the session of a mark; nil for a damaged mark.
func (n *Notes) session(m string) *session {
	salt, text, _ := strings.Cut(m, ".")
	var h hash
	if _, err := hex.Decode(h[:], []byte(text[:min(len(text), hex.EncodedLen(len(h)))])); salt == "" || len(text) != hex.EncodedLen(len(h)) || err != nil {
		return nil
	}
	if n.own == "" {
		n.own = salt
	}
	if n.marks[salt] == nil {
		n.marks[salt] = map[hash]*session{}
	}
	if n.marks[salt][h] == nil {
		n.marks[salt][h] = &session{}
	}
	return n.marks[salt][h]
}

// of yields what the notes say of a session, once for each salt.
func (n *Notes) of(id string) (found []*session) {
	for salt, sessions := range n.marks {
		if s := sessions[hashOf(salt, id)]; s != nil {
			found = append(found, s)
		}
	}
	return found
}

// Removed reports whether a session was removed or retired.
func (n *Notes) Removed(id string) bool {
	return slices.ContainsFunc(n.of(id), func(s *session) bool { return s.removed })
}

// Erased reports whether a session has erased events.
func (n *Notes) Erased(id string) bool {
	return slices.ContainsFunc(n.of(id), func(s *session) bool { return s.erased })
}

// IsEmpty reports whether there are no notes.
func (n *Notes) IsEmpty() bool { return n.head.IsZero() }

// Holds are the holds on a session, the oldest first. A lost note is a hold on all sessions.
func (n *Notes) Holds(id string) []Hold {
	holds := slices.Clone(n.lost)
	for _, s := range n.of(id) {
		holds = append(holds, s.holds...)
	}
	return unreleased(slices.Values(holds))
}

// HoldsOn are the holds that name a session. The session with the notes has the holds of lost
// notes.
func (n *Notes) HoldsOn(id string) []Hold {
	return slices.DeleteFunc(n.Holds(id), func(h Hold) bool { return h.Lost != (id == Session) })
}

func unreleased(all iter.Seq[*hold]) (holds []Hold) {
	for h := range all {
		if !h.released {
			holds = append(holds, h.Hold)
		}
	}
	slices.SortFunc(holds, func(a, b Hold) int { return a.ID.Compare(b.ID) })
	return holds
}

// AllHolds are the holds on all sessions, the oldest first.
func (n *Notes) AllHolds() []Hold { return unreleased(maps.Values(n.holds)) }

func hashOf(salt, id string) (h hash) {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(id))
	copy(h[:], mac.Sum(nil))
	return h
}

// Mark is the mark of a session.
func (n *Notes) Mark(id string) string {
	if n.own == "" {
		n.own = rand.Text()
	}
	h := hashOf(n.own, id)
	return n.own + "." + hex.EncodeToString(h[:])
}

// Append writes notes, durably if the store can. note makes them from the stored notes; it is called again
// if another process was first.
func Append(ctx context.Context, log *eventlog.Log, note func(stored *Notes) ([]event.StoreNote, error)) error {
	return update(ctx, log, func(stored *Notes) (events []event.Event, err error) {
		notes, err := note(stored)
		for _, n := range notes {
			events = append(events, event.New(n))
		}
		return events, err
	})
}

// NoteErased notes sessions that get erased events, unless it is noted already. The notes
// themselves need no note: no import stores copies of them.
func NoteErased(ctx context.Context, log *eventlog.Log, sessions ...string) error {
	return Append(ctx, log, func(stored *Notes) ([]event.StoreNote, error) {
		note := event.StoreNote{Type: engine.Erased}
		for _, id := range sessions {
			if id != Session && !stored.Erased(id) {
				note.Sessions = append(note.Sessions, stored.Mark(id))
			}
		}
		if len(note.Sessions) == 0 {
			return nil, nil
		}
		return []event.StoreNote{note}, nil
	})
}

// update appends the events that change returns at the head of the stored notes.
func update(ctx context.Context, log *eventlog.Log, change func(stored *Notes) ([]event.Event, error)) error {
	for {
		stored, err := Load(ctx, log)
		if err != nil {
			return err
		}
		events, err := change(stored)
		if err != nil || len(events) == 0 {
			return err
		}
		err = stored.append(ctx, log, events)
		if !errors.Is(err, eventlog.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
}

// inAppend bounds the notes of one append.
const inAppend = 200

// append writes events at the head of the notes, and moves the head.
func (n *Notes) append(ctx context.Context, log *eventlog.Log, events []event.Event) error {
	if n.head.IsZero() {
		start := event.New(event.Session{Title: "Removals and holds of this store", State: true})
		events = slices.Insert(events, 0, start)
	}
	for some := range slices.Chunk(events, inAppend) {
		stored, err := engine.Of(log).Append(ctx, Session, n.head, true, some...)
		if errors.Is(err, eventlog.ErrUnsupported) { // servers that do not sync: as durable as any append there
			stored, err = engine.Of(log).Append(ctx, Session, n.head, false, some...)
		}
		if err != nil {
			return fmt.Errorf("write the notes of the store: %w", err)
		}
		n.head = stored[len(stored)-1].Head()
	}
	return nil
}

// Copy adds the notes of src that dst lacks to the notes of dst. They keep their ids and times.
func Copy(ctx context.Context, dst, src *eventlog.Log) error {
	return update(ctx, dst, func(*Notes) (missing []event.Event, err error) {
		has := map[ulid.ULID]bool{}
		for e, err := range dst.Read(ctx, Session, eventlog.All()) {
			if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
				return nil, err
			}
			has[e.ID] = true
		}
		for e, err := range src.Read(ctx, Session, eventlog.All()) {
			if err != nil {
				return nil, fmt.Errorf("read the notes of the source: %w", err)
			}
			if has[e.ID] || !engine.IsNote(e.Type) {
				continue
			}
			note, err := event.DecodeKept[event.StoreNote](&e)
			if err != nil {
				return nil, err
			}
			if e.Redacted() {
				note.Reason = "erased"
			}
			fresh := event.New(note)
			fresh.ID, fresh.Timestamp = e.ID, e.Timestamp
			missing = append(missing, fresh)
		}
		return missing, nil
	})
}
