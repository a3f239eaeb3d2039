package lists

import (
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/projection"
)

// chain is the digest of all that was said in a conversation up to a message.
// The empty one is its start.
type chain event.Digest

// then is the chain with what says behind it.
func (c chain) then(says jsontext.Value) (chain, error) {
	d, err := projection.CanonicalDigest(says)
	return chain(event.DigestOf([]byte(string(c) + "\n" + string(d)))), err
}

// with is the chain with an element behind it; m is the message that it is, if it
// is one.
func (c chain) with(e *element, m *event.Message, isMessage bool) (chain, error) {
	if !isMessage {
		return c.then(e.value)
	}
	says, err := document.Saying(m)
	if err != nil {
		return "", err
	}
	return c.then(says)
}

// key identifies an event of the element that ends the chain.
func (c chain) key(session string, part int) interop.Key {
	return interop.RecordKey(session, event.Digest(c), 0, part)
}

// group names the message whose first piece ends the chain.
func (c chain) group() string {
	hexed := event.Digest(c).Hex()
	sum, _ := hex.DecodeString(hexed[:24]) // a digest is hex
	return "run-" + hex.EncodeToString(sum)
}
