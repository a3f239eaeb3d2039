package render

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/modelapi"
)

// CallIDs gives each call of a request a unique id.
type CallIDs struct {
	// Limit is the maximum length of an id.
	Limit int
	used  map[string]bool
}

// Taken reports whether a call has the id.
func (c *CallIDs) Taken(id string) bool { return c.used[id] }

// Take gives the id to a call.
func (c *CallIDs) Take(id string) {
	if c.used == nil {
		c.used = map[string]bool{}
	}
	c.used[id] = true
}

// Next takes an id for the next call, whose id in the log is id.
func (c *CallIDs) Next(id string) string {
	free := modelapi.Name(id, c.Limit)
	for n := 2; c.used[free]; n++ {
		free = modelapi.Name(fmt.Sprintf("%s_%d", id, n), c.Limit)
	}
	c.Take(free)
	return free
}

// Arguments makes an object of the arguments of a call: providers accept no other
// value. A value that is no object becomes the member "input".
func Arguments(v jsontext.Value) jsontext.Value {
	switch v.Kind() {
	case '{':
		return v
	case jsontext.KindInvalid, 'n':
		return jsontext.Value(`{}`)
	default:
		return append(append(jsontext.Value(`{"input":`), v...), '}')
	}
}
