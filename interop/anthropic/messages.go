// Package anthropic renders the history of a session as a request for Anthropic's
// Messages API, and parses answers. A tool's name keeps letters, digits, "_" and "-"; any
// other name gets a hash, because the API does not accept it.
//
//	history, err := projection.Load(ctx, log, "order-42", projection.History())
//	messages, err := history.State.Messages()
//	request, err := anthropic.Messages(messages)
package anthropic

import (
	"cmp"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

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
	return render.Value(history, func(w io.Writer, all iter.Seq2[projection.Entry, error]) error {
		return WriteMessages(w, all, opts...)
	})
}

// WriteMessages writes the request of Messages message by message, without a newline. It
// holds the system text and the newest two messages. It returns errors of w, of the
// history and of Blob; what it wrote before an error is no complete request.
func WriteMessages(w io.Writer, history iter.Seq2[projection.Entry, error], opts ...Options) error {
	b := builder{w: w}
	if len(opts) > 0 {
		b.options = opts[0]
	}
	b.options.Provider = cmp.Or(b.options.Provider, modelapi.Anthropic)
	b.ids.Limit = modelapi.MaxMessagesID
	if err := render.Each(history, b.add); err != nil {
		return err
	}
	return b.finish()
}

type message struct {
	Role    event.Role `json:"role"`
	Content []any      `json:"content"`
}
