package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// nested is an array in so many levels.
func nested(levels int) jsontext.Value {
	return jsontext.Value(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

// Data and metadata have a limited depth, in new and in parsed events.
func TestDepthOfEvents(t *testing.T) {
	const around = 3 // of arguments: the data, its parts, the part
	message := func(levels int) Event {
		return New(Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", nested(levels))}})
	}
	metadata := func(levels int) Event {
		e := Event{Type: "x", Data: jsontext.Value(`1`)}
		if err := e.SetMetadata("m", nested(levels)); err != nil {
			t.Fatal(err)
		}
		return e
	}
	snapshot := Event{Type: ProjectionSnapshotted, Data: jsontext.Value(
		`{"projection":"p","version":1,"snapshot_id":"00000000-0000-4000-8000-000000000001","state_digest":"` + string(sampleDigest) + `","trigger":"manual","seq":1,"state":`)}
	state := func(levels int) Event {
		e := snapshot
		e.Data = append(e.Data.Clone(), string(nested(levels))+"}"...)
		return e
	}
	for name, test := range map[string]struct {
		fits, deeper Event
		rule         error
	}{
		"data":                {Event{Type: "x", Data: nested(maxDepth)}, Event{Type: "x", Data: nested(maxDepth + 1)}, ErrInvalidData},
		"what was made":       {message(maxDepth - around), message(maxDepth - around + 1), ErrInvalidData},
		"metadata":            {metadata(maxDepth - 1), metadata(maxDepth), errMetadata},
		"a state of snapshot": {state(2*maxDepth - 1), state(2 * maxDepth), ErrInvalidData},
	} {
		if err := test.fits.Normalize(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := test.deeper.Normalize(); !errors.Is(err, test.rule) || !strings.Contains(err.Error(), "levels") {
			t.Errorf("%s, deeper: %v", name, err)
		}
	}
}
