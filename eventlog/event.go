package eventlog

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// Event is one immutable fact of a session.
//
// Before it is appended an event has an id, a type, and what its constructor
// gave it; Append fills in the rest. An event that was read shares its bytes
// with the line it came from: Metadata and Data must not be modified.
type Event struct {
	// Seq is the position in the lineage, from 1: the only order of events.
	Seq int64
	// ID is minted by the constructor, so that a retry carries the same id.
	ID ulid.ULID
	// SessionID is the session the event belongs to. Append fills it in.
	SessionID string
	Type      Type
	// Timestamp is informative, never an order. Append sets it when it is zero.
	Timestamp time.Time
	// Cost is what the event cost; zero is none.
	Cost Cost
	// Metadata is a JSON object or empty.
	Metadata jsontext.Value
	// Data is the payload as one JSON value. It is nil in a redacted event.
	Data jsontext.Value

	line []byte // the canonical line, without newline; nil before the append
	rare *rare  // what few events have
	off  offsets
	more int32
}

// rare holds the fields that few events have.
type rare struct {
	cut      *Cut
	blobs    []Digest
	extras   []byte         // unknown envelope members as `"name":value,…`
	digest   Digest         // of spilled data
	bytes    int64          // of spilled data
	kept     jsontext.Value // of a redacted event
	redacted bool
	verbatim []byte // the stored bytes of a line that is not canonical
	facts    *facts // of an event made by a constructor
}

// offsets locate the hashed parts in the canonical line.
type offsets struct {
	headerEnd uint32 // end of the header, which starts at bodyStart
	hash      uint32 // first hex digit of hash; salt, if any, ends 10 bytes before
	commit    uint32 // first hex digit of commit in a redacted line
	metaStart uint32 // metadata and unknown members
	metaEnd   uint32
}

// Cut describes a torn tail that was removed before an append.
type Cut struct {
	Bytes  int64
	SHA256 Hash
}

// Line is the event's stored line without its newline, exactly as it is kept.
// It must not be modified. It is nil before the event is appended.
func (e *Event) Line() []byte {
	if e.rare != nil && e.rare.verbatim != nil {
		return e.rare.verbatim
	}
	return e.line
}

// More is how many events of the same atomic append follow this one.
func (e *Event) More() int { return int(e.more) }

// Cut is the torn tail that was removed just before this event's append, or nil.
func (e *Event) Cut() *Cut {
	if e.rare == nil {
		return nil
	}
	return e.rare.cut
}

// Blobs are the digests of every blob the event needs, sorted.
func (e *Event) Blobs() []Digest {
	if e.rare == nil {
		return nil
	}
	return e.rare.blobs
}

// Extras are the envelope members this version does not know, as
// `"name":value,…` in order of appearance.
func (e *Event) Extras() []byte {
	if e.rare == nil {
		return nil
	}
	return e.rare.extras
}

// Spilled reports whether the stored line keeps the data as a blob, and which.
// An event that a Log yields has its Data all the same.
func (e *Event) Spilled() (d Digest, bytes int64, ok bool) {
	if e.rare == nil || e.rare.digest == "" {
		return "", 0, false
	}
	return e.rare.digest, e.rare.bytes, true
}

// Redacted reports whether the content was erased.
func (e *Event) Redacted() bool { return e.rare != nil && e.rare.redacted }

// Kept is what redaction left of the payload: the structural members of its
// type as an object. It is nil unless the event is redacted.
func (e *Event) Kept() jsontext.Value {
	if e.rare == nil {
		return nil
	}
	return e.rare.kept
}

// Hash is the event's link in the hash chain; zero before it is appended.
func (e *Event) Hash() Hash {
	var h Hash
	if e.line != nil {
		decodeHex(h[:], e.line[e.off.hash:e.off.hash+64])
	}
	return h
}

// Follows reports whether e, as it is stored, is chained to an event of that hash:
// whether that event, with its whole past, is what e was appended behind.
func (e *Event) Follows(prev Hash) bool { return e.chainsFrom(prev) }

// Head is the head of a session whose newest event is e.
func (e *Event) Head() Head { return Head{Seq: e.Seq, Hash: e.Hash()} }

func (e *Event) String() string {
	return fmt.Sprintf("%s %d %s", e.SessionID, e.Seq, e.Type)
}

func (e *Event) rarely() *rare {
	if e.rare == nil {
		e.rare = new(rare)
	}
	return e.rare
}

// own gives e its own copy of the rare fields, before changing them.
func (e *Event) own() *rare {
	fresh := rare{}
	if e.rare != nil {
		fresh = *e.rare
	}
	e.rare = &fresh
	return e.rare
}
