package interop

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// OriginKey is the name of the Origin in an event's metadata.
const OriginKey = "origin"

// Origin is the place in a file that an imported event was made from.
type Origin struct {
	Source string       `json:"source"`
	Line   int64        `json:"line"`
	Offset int64        `json:"offset"`
	Bytes  int64        `json:"bytes"`
	Digest event.Digest `json:"digest"`
	// Part numbers the events of one record from 0.
	Part int `json:"part,omitzero"`
}

// MarshalJSONTo writes the origin.
func (o Origin) MarshalJSONTo(enc *jsontext.Encoder) error {
	value, err := o.value()
	if err != nil {
		return err
	}
	return enc.WriteValue(value)
}

// value encodes the origin without reflection, because every event has an origin.
func (o *Origin) value() (jsontext.Value, error) {
	b := append(make([]byte, 0, 256), `{"source":`...)
	b, err := jsontext.AppendQuote(b, o.Source)
	b = strconv.AppendInt(append(b, `,"line":`...), o.Line, 10)
	b = strconv.AppendInt(append(b, `,"offset":`...), o.Offset, 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), o.Bytes, 10)
	b, digestErr := jsontext.AppendQuote(append(b, `,"digest":`...), o.Digest)
	if o.Part != 0 {
		b = strconv.AppendInt(append(b, `,"part":`...), int64(o.Part), 10)
	}
	return append(b, '}'), errors.Join(err, digestErr)
}

// Key identifies an imported event, whatever file the record is in. It is the random
// part of the event's id. Equal records of a session differ by their occurrence.
type Key [10]byte

// RecordKey is the key of an event made from a record. digest is the importer's digest
// of the content, which may differ from Record.Digest. occurrence numbers equal
// records of the session from 0, and part numbers the events of one record from 0.
func RecordKey(session string, digest event.Digest, occurrence, part int) Key {
	b := append(append(make([]byte, 0, 384), session...), 0)
	b = append(append(b, digest...), 0)
	b = binary.BigEndian.AppendUint32(b, uint32(occurrence))
	b = binary.BigEndian.AppendUint32(b, uint32(part))
	sum := sha256.Sum256(b)
	return Key(sum[:10])
}

// FixedKey is the key of an event that a session has once, its start for example.
func FixedKey(session, name string) Key {
	sum := sha256.Sum256([]byte(session + "\x00" + name))
	return Key(sum[:10])
}

// ID is the event id for a record of time t. A time before 1970 counts as 1970.
func (k Key) ID(t time.Time) ulid.ULID {
	var id ulid.ULID
	ms := max(t.UnixMilli(), 0)
	if t.IsZero() || uint64(ms) > ulid.MaxTime() {
		ms = 0
	}
	_ = id.SetTime(uint64(ms)) // the time is within bounds
	copy(id[6:], k[:])
	return id
}

// KeyOf is the key in an event id.
func KeyOf(id ulid.ULID) Key { return Key(id[6:]) }
