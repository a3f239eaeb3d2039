package records

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// OriginKey is the name of the Origin in an event's metadata.
const OriginKey = "origin"

// Origin is the place in a file that an imported event was made from. Only an event that
// holds all of a record has Bytes, Digest and Key, so that a redaction erases them with
// the content that they describe.
type Origin struct {
	Source string `json:"source"`
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	// Part numbers the events of one record from 0.
	Part   int          `json:"part,omitzero"`
	Bytes  int64        `json:"bytes,omitzero"`
	Digest event.Digest `json:"digest,omitzero"`
	// Key is Record.Key. An event with a part of a record can have the key of this part.
	Key event.Digest `json:"key,omitzero"`
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
	b := append(make([]byte, 0, 320), `{"source":`...)
	b, err := jsontext.AppendQuote(b, o.Source)
	b = strconv.AppendInt(append(b, `,"line":`...), o.Line, 10)
	b = strconv.AppendInt(append(b, `,"offset":`...), o.Offset, 10)
	if o.Part != 0 {
		b = strconv.AppendInt(append(b, `,"part":`...), int64(o.Part), 10)
	}
	if o.Digest != "" {
		b = strconv.AppendInt(append(b, `,"bytes":`...), o.Bytes, 10)
		b, err = appendDigest(b, `,"digest":`, o.Digest, err)
	}
	if o.Key != "" {
		b, err = appendDigest(b, `,"key":`, o.Key, err)
	}
	return append(b, '}'), err
}

func appendDigest(b []byte, name string, d event.Digest, before error) ([]byte, error) {
	b, err := jsontext.AppendQuote(append(b, name...), d)
	return b, errors.Join(before, err)
}

// DigestOf is the digest in the origin of an event: Key, else Digest; empty if it has none.
func DigestOf(e *event.Event) event.Digest {
	origin, ok := e.MetadataValue(OriginKey)
	if !ok {
		return ""
	}
	for _, name := range []string{`"key":"`, `"digest":"`} { // no string of the origin contains these quotes
		if _, rest, ok := bytes.Cut(origin, []byte(name)); ok {
			if end := bytes.IndexByte(rest, '"'); end > 0 {
				return event.Digest(rest[:end])
			}
		}
	}
	return ""
}
