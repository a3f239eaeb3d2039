package lists

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Reader parses the messages of a list, for importers of formats with such lists. It
// is used by one goroutine.
type Reader struct{ r *reader }

// NewReader returns a reader for a list. Answers without a model get the given one.
func NewReader(elements []jsontext.Value, model string) *Reader {
	c := &conversation{model: model}
	for _, v := range elements {
		c.elements = append(c.elements, element{value: v})
	}
	return &Reader{newReader(c)}
}

// Message parses the next element; ok is false if it is no message. Bodies of images
// stay in the Data of their parts.
func (r *Reader) Message(v jsontext.Value) (m event.Message, ok bool, err error) {
	return r.r.message(v)
}
