package document

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// saying is what an event says: of a message what is said, without what is
// told of it, and of any other its data.
func saying(e *event.Event) (event.Digest, error) {
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		return "", err
	}
	if !ok {
		d, err := projection.CanonicalDigest(e.Data)
		return event.DigestOf([]byte(string(e.Type) + "\n" + string(d))), err
	}
	says, err := Saying(&m)
	if err != nil {
		return "", err
	}
	return projection.CanonicalDigest(says)
}

// Saying is what a message says, without the names and members that differ from
// one recording of it to the next.
func Saying(m *event.Message) (jsontext.Value, error) {
	type words struct {
		Role  event.Role   `json:"role"`
		Parts []event.Part `json:"parts"`
	}
	return json.Marshal(words{m.Role, bare(m.Parts)})
}

// bare are parts without ids, extras and bodies, which their digests stand for.
func bare(parts []event.Part) []event.Part {
	all := make([]event.Part, len(parts))
	for i, p := range parts {
		p.ID, p.Extra, p.Content = "", nil, bare(p.Content)
		if p.Data != nil {
			p.URL, p.Data = string(event.DigestOf(p.Data)), nil
		}
		all[i] = p
	}
	return all
}

// then is the digest of all that was said up to something that says next.
func then(before, next event.Digest) event.Digest {
	return event.DigestOf([]byte(string(before) + "\n" + string(next)))
}
