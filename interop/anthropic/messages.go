// Package anthropic renders the history of a session as a request for Anthropic's
// Messages API, and checks such requests.
package anthropic

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Provider is the default of Options.Provider.
const Provider = "anthropic"

// Options configure Messages. The zero value is ready for use.
type Options struct {
	// Provider and Model are the receiver of the request; defaults are "anthropic"
	// and any model. Messages renders thinking, verbatim, only if it came from this
	// provider and model.
	Provider string
	Model    string
	// Blob returns the body of an image or a document. Without it, a line of text
	// replaces the body.
	Blob func(event.BlobRef) ([]byte, error)
}

// Messages renders a history as {"system": [...], "messages": [...]}. At most one
// Options is used.
//
// System and developer messages at the start of the history become the system text.
// Later ones become text of the user. Consecutive messages of one role become one
// message, with the results of calls first.
//
// The API has no place for some content, and Messages leaves it out: empty text,
// thinking without a signature or from other models, and messages without remaining
// content. A call without a result in the next message gets a result that says so. A
// result without a call is left out. A history from package projection has neither
// case. If the history starts with the assistant, a first user message says so.
//
// Equal histories give equal bytes. If all calls of a history have results, its
// rendering without the closing brackets is a prefix of the rendering of every longer
// history. Messages returns errors of Blob.
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

// request is a request without the model and its parameters.
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
