package document

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
)

// The kinds of events of an item, for their keys.
const (
	ownPart    = 0 // the item's own event
	changePart = 2 // the item with new content
)

// Chain is the digest of the contents of an item and of all items before it. The
// empty Chain is the start of a session.
type Chain event.Digest

// Then is the chain with one more item, which has the content.
func (c Chain) Then(content jsontext.Value) (Chain, error) {
	d, err := projection.CanonicalDigest(content)
	return c.then(d), err
}

func (c Chain) then(content event.Digest) Chain {
	return Chain(event.DigestOf([]byte(string(c) + "\n" + string(content))))
}

// key is the key of the event of the last item.
func (c Chain) key(session string) interop.Key {
	return interop.RecordKey(session, event.Digest(c), 0, ownPart)
}

// contentOf is the digest of the content of an event: of Content for a message, of
// the type and the data for any other event.
func contentOf(e *event.Event) (event.Digest, error) {
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		return "", err
	}
	if !ok {
		d, err := projection.CanonicalDigest(e.Data)
		return event.DigestOf([]byte(string(e.Type) + "\n" + string(d))), err
	}
	content, err := Content(&m)
	if err != nil {
		return "", err
	}
	return projection.CanonicalDigest(content)
}

// Content is the role and the parts of a message. It omits ids and extras, because
// they differ from one recording of a message to the next.
func Content(m *event.Message) (jsontext.Value, error) {
	type content struct {
		Role  event.Role   `json:"role"`
		Parts []event.Part `json:"parts"`
	}
	return json.Marshal(content{m.Role, bare(m.Parts)})
}

// bare copies parts without ids and extras, and with the digest of each body
// instead of the body.
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
