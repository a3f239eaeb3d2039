package event

import (
	"bytes"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/line"
)

// Event is one immutable fact of a session.
//
// New makes an event with an id, a type and data; Log.Append fills in the rest.
// A stored event shares its bytes with its line: Metadata and Data must not be
// modified. Events may be copied and read concurrently.
type Event struct {
	// Seq is the position in the lineage, from 1: the only order of events.
	Seq int64
	// ID identifies the event. New mints it, so that a retried append carries
	// the same id.
	ID ulid.ULID
	// SessionID is the session that holds the event. Append fills it in.
	SessionID string
	Type      Type
	// Timestamp is informative, never an order. Append sets it if it is zero.
	Timestamp time.Time
	// Cost is the cost of the event; zero means no cost.
	Cost Cost
	// Metadata is a JSON object or empty.
	Metadata jsontext.Value
	// Data is the payload, one JSON value. It is nil in a redacted event, and in
	// a bare event whose data is spilled.
	Data jsontext.Value

	line line.Sealed // zero before the append
	rare *rare       // fields that few events have
	memo *memo       // of an event that remembers its payload
	more int32
}

// rare holds the fields that few events have.
type rare struct {
	cut      Cut
	blobs    []Digest
	extras   []byte         // unknown envelope members as `"name":value,…`
	digest   Digest         // of spilled data
	bytes    int64          // of spilled data
	kept     jsontext.Value // of a redacted event
	redacted bool
	verbatim []byte // the stored bytes of a line that is not canonical
	// fault is the error of a payload that New cannot encode, or the rule that a payload of
	// an unknown type breaks.
	fault error
}

// Cut describes a torn tail that was removed before an append.
type Cut struct {
	Bytes  int64
	SHA256 Hash
}

// Line is the stored line without its newline, exactly as it is stored. It must
// not be modified. It is nil before the append.
func (e *Event) Line() []byte {
	if e.rare != nil && e.rare.verbatim != nil {
		return e.rare.verbatim
	}
	return e.line.Canonical()
}

// More is how many events of the same atomic append follow this one.
func (e *Event) More() int { return int(e.more) }

// Cut is the torn tail that was removed just before this event's append. ok is
// false if there was none.
func (e *Event) Cut() (c Cut, ok bool) {
	if e.rare == nil || e.rare.cut.Bytes == 0 {
		return Cut{}, false
	}
	return e.rare.cut, true
}

// Blobs are the digests of every blob that the event needs, sorted.
func (e *Event) Blobs() []Digest {
	if e.rare == nil {
		return nil
	}
	return e.rare.blobs
}

// Clone returns a copy of e that shares no bytes with e.
func (e *Event) Clone() Event {
	c, _ := e.CloneTo(make([]byte, 0, max(len(e.line.Canonical()), len(e.Data))+len(e.Metadata)))
	return c
}

// CloneTo is Clone with the bytes appended to buf, which it returns.
func (e *Event) CloneTo(buf []byte) (Event, []byte) {
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		from := len(buf)
		buf = append(buf, b...)
		return buf[from:len(buf):len(buf)]
	}
	c := *e
	c.memo = nil
	c.line = e.line.At(own(e.line.Canonical()))
	if len(e.Data) > 0 && bytes.Equal(e.line.Data(), e.Data) {
		c.Data = c.line.Data()
	} else {
		c.Data = own(e.Data)
	}
	c.Metadata = own(e.Metadata)
	if e.rare != nil {
		r := *e.rare
		r.extras, r.kept, r.verbatim = own(r.extras), own(r.kept), own(r.verbatim)
		c.rare = &r
	}
	return c, buf
}

// Extras are the envelope members that this version does not know, as
// `"name":value,…` in order of appearance.
func (e *Event) Extras() []byte {
	if e.rare == nil {
		return nil
	}
	return e.rare.extras
}

// Spilled reports whether the stored line keeps the data in a blob, and which.
// A Log yields such an event with its Data, unless it is asked for bare events.
func (e *Event) Spilled() (d Digest, bytes int64, ok bool) {
	if e.rare == nil || e.rare.digest == "" {
		return "", 0, false
	}
	return e.rare.digest, e.rare.bytes, true
}

// Redacted reports whether the content was erased.
func (e *Event) Redacted() bool { return e.rare != nil && e.rare.redacted }

// Kept is the object that redaction left of the payload: the structural members
// of its type. It is nil unless the event is redacted.
func (e *Event) Kept() jsontext.Value {
	if e.rare == nil {
		return nil
	}
	return e.rare.kept
}

// Hash is the event's link in the hash chain; zero before the append.
func (e *Event) Hash() Hash {
	if e.line.Canonical() == nil {
		return Hash{}
	}
	return Hash(e.line.Hash())
}

// Follows reports whether a stored event is chained to an event with that hash,
// and so to its whole past. It judges the bytes of the line, not the fields of e.
func (e *Event) Follows(prev Hash) bool {
	return e.line.Canonical() != nil && e.line.Follows(line.Hash(prev))
}

// Head is the head of a session with e as its newest event.
func (e *Event) Head() Head { return Head{Seq: e.Seq, Hash: e.Hash()} }

func (e *Event) String() string {
	return fmt.Sprintf("%s %d %s", e.SessionID, e.Seq, e.Type)
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

// Dated is the time of a timestamp. It is zero for 1970-01-01T00:00:00Z, the timestamp of
// events that were imported from a source without dates.
func Dated(timestamp time.Time) time.Time {
	if timestamp.Unix() == 0 && timestamp.Nanosecond() == 0 {
		return time.Time{}
	}
	return timestamp
}
