package document

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// saying is what an event says: of a message what is said, without what is
// told of it, and of any other its data.
func saying(e *eventlog.Event) (eventlog.Digest, error) {
	m, ok, err := e.Message()
	if err != nil {
		return "", err
	}
	if !ok {
		d, err := projection.CanonicalDigest(e.Data)
		return eventlog.DigestOf([]byte(string(e.Type) + "\n" + string(d))), err
	}
	type words struct {
		Role  eventlog.Role   `json:"role"`
		Parts []eventlog.Part `json:"parts"`
	}
	b, err := json.Marshal(words{m.Role, bare(m.Parts)})
	if err != nil {
		return "", err
	}
	return projection.CanonicalDigest(jsontext.Value(b))
}

// bare are parts without ids and extras.
func bare(parts []eventlog.Part) []eventlog.Part {
	all := make([]eventlog.Part, len(parts))
	for i, p := range parts {
		p.ID, p.Extra, p.Content = "", nil, bare(p.Content)
		all[i] = p
	}
	return all
}

// then is the digest of all that was said up to something that says next.
func then(before, next eventlog.Digest) eventlog.Digest {
	return eventlog.DigestOf([]byte(string(before) + "\n" + string(next)))
}
