// Package anthropic renders the history of a session in the shape of
// Anthropic's Messages API, and checks requests of that shape.
package anthropic

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Provider is the name of the provider in messages of the log.
const Provider = "anthropic"

// Options configure Messages. The zero value is ready for use.
type Options struct {
	// Provider and Model are those the request goes to. Thinking is rendered,
	// verbatim, where its message came from there, and is left out elsewhere.
	// An empty Provider is "anthropic", an empty Model any of its models.
	Provider string
	Model    string
	// Blob gets the body of an image or a document. Without it, a line of text
	// stands where the body would.
	Blob func(event.BlobRef) ([]byte, error)
}

// Messages renders a history as {"system": [...], "messages": [...]}.
//
// System and developer messages that lead the history are the system text;
// later ones stand in their place as text of the user. Neighbours of one role
// become one message, in which the results of calls come first. What the shape
// has no place for is left out: empty text, thinking of others or without a
// signature, a message with nothing left. A call that the next message does not
// answer gets a result that says so, and a result without its call is left out;
// a history as projection gives it has neither. A history that does not begin
// with the user gets a first message that says so.
//
// Equal histories give equal bytes. Where all calls of a history have results,
// its rendering without the brackets at the end is a prefix of the rendering of
// every longer one. An error is one of Blob.
func Messages(history []projection.Entry, opts ...Options) (jsontext.Value, error) {
	var b builder
	if len(opts) > 0 {
		b.options = opts[0]
	}
	b.options.Provider = cmp.Or(b.options.Provider, Provider)
	b.ids.Limit = maxID
	for i := range history {
		if err := b.add(&history[i].Message); err != nil {
			return nil, fmt.Errorf("render event %d: %w", history[i].Seq, err)
		}
	}
	return b.request()
}

// request is a whole request, but for the model and its parameters.
type request struct {
	System   []any     `json:"system,omitempty"`
	Messages []message `json:"messages"`
}

type message struct {
	Role    event.Role `json:"role"`
	Content []any      `json:"content"`
}

func (b *builder) request() (jsontext.Value, error) {
	b.finish()
	r := request{System: b.system, Messages: []message{}}
	for i := range b.turns {
		r.Messages = append(r.Messages, b.turns[i].message())
	}
	return json.Marshal(r, jsontext.PreserveRawStrings(true))
}
