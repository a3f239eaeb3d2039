package lists

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Reader reads the messages of a list, for formats that hold such lists. It is
// used by one goroutine.
type Reader struct{ r *reader }

// NewReader makes a reader of a list whose answers are of the model, if they
// name no other.
func NewReader(elements []jsontext.Value, model string) *Reader {
	c := &conversation{model: model}
	for _, v := range elements {
		c.elements = append(c.elements, element{value: v})
	}
	return &Reader{newReader(c)}
}

// Message reads the next element; ok is false when it is no message. Bodies of
// images stay in the Data of their parts.
func (r *Reader) Message(v jsontext.Value) (m event.Message, ok bool, err error) {
	return r.r.message(v)
}

// UsageOf reads token counts as OpenAI or Anthropic write them; ok is false
// where there are none.
func UsageOf(v jsontext.Value) (u event.Usage, ok bool) { return usageOf(v) }
