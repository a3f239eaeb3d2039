package document

import (
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// contentKey is the digest of the role and the parts of a message. It omits ids and
// extras, because they differ from one recording of a message to the next.
func contentKey(m *event.Message) (event.Digest, error) {
	b, err := appendParts(appendText(make([]byte, 0, 512), string(m.Role)), m.Parts)
	return event.DigestOf(b), err
}

// appendParts appends the content of parts without ambiguity: each text has its length
// before it. A body is its digest.
func appendParts(b []byte, parts []event.Part) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		body := string(p.Blob.Blob)
		if p.Data != nil {
			body = string(event.DigestOf(p.Data))
		}
		for _, text := range []string{
			string(p.Type), p.Text, p.Signature, p.Encrypted, p.MediaType, p.CallID, p.Name, p.URL, body, p.Kind, string(p.Raw),
		} {
			b = appendText(b, text)
		}
		for _, flag := range []bool{p.Redacted, p.IsError, p.Interrupted} {
			if b = append(b, 0); flag {
				b[len(b)-1] = 1
			}
		}
		for _, v := range []jsontext.Value{p.Arguments, p.Value} {
			if v == nil {
				b = appendText(b, "")
				continue
			}
			key, err := canonicalKey(v)
			if err != nil {
				return nil, err
			}
			b = appendText(b, key)
		}
		var err error
		if b, err = appendParts(b, p.Content); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// large is the size of a value from which it is compared by its bytes: its canonical JSON needs
// several times its memory.
const large = 1 << 20

// canonicalKey is a text that is equal for equal values.
func canonicalKey(v jsontext.Value) (string, error) {
	if len(v) > large {
		c, err := rawjson.Compact(v)
		return string(event.DigestOf(c)), err
	}
	c, err := projection.Canonical(v)
	return string(c), err
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// valueKey is the digest of a record that is no message.
func valueKey(kind string, v jsontext.Value) (event.Digest, error) {
	d, err := projection.CanonicalDigest(v)
	return event.DigestOf([]byte(kind + "\n" + string(d))), err
}
