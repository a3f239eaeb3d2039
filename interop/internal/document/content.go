package document

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// contentKey is the digest of the role and the parts of a message. It omits ids and
// extras, because they differ from one recording of a message to the next.
func contentKey(m *event.Message) (event.Digest, error) {
	type content struct {
		Role  event.Role   `json:"role"`
		Parts []event.Part `json:"parts"`
	}
	bare, err := bareParts(m.Parts)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(content{m.Role, bare})
	return event.DigestOf(b), err
}

// bareParts copies parts without ids and extras, and with the digest of each body
// instead of the body.
func bareParts(parts []event.Part) (all []event.Part, err error) {
	all = make([]event.Part, len(parts))
	for i, p := range parts {
		p.ID, p.Extra = "", nil
		if p.Data != nil {
			p.URL, p.Data = string(event.DigestOf(p.Data)), nil
		}
		if p.Content != nil {
			p.Content, err = bareParts(p.Content)
		}
		for _, v := range []*jsontext.Value{&p.Arguments, &p.Value} {
			if *v != nil && err == nil {
				*v, err = projection.Canonical(*v)
			}
		}
		if err != nil {
			return nil, err
		}
		all[i] = p
	}
	return all, nil
}

// valueKey is the digest of a record that is no message.
func valueKey(kind string, v jsontext.Value) (event.Digest, error) {
	d, err := projection.CanonicalDigest(v)
	return event.DigestOf([]byte(kind + "\n" + string(d))), err
}
