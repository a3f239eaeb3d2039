package flow

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/raw"
)

// The kinds of an op_logged event with the body of a model call.
const (
	rawRequest  = "raw_request"
	rawResponse = "raw_response"
)

// rawEvents stores the bodies that were captured in an attempt. A body that cannot be
// stored is an error in its event, and not of the effect.
func (t *turn) rawEvents(ctx context.Context, x *running) (events []event.Event) {
	calls := x.raw.Calls()
	for i := range calls {
		c := &calls[i]
		if c.Request.Bytes > 0 {
			events = append(events, t.rawEvent(ctx, x, rawRequest, &c.Request, 0))
		}
		if c.Response.Bytes > 0 || c.Status > 0 {
			events = append(events, t.rawEvent(ctx, x, rawResponse, &c.Response, c.Status))
		}
	}
	return events
}

// rawValue is the value of an op_logged event with a body.
type rawValue struct {
	Attempt   int   `json:"attempt"`
	Status    int   `json:"status,omitzero"`
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated,omitzero"`
}

func (t *turn) rawEvent(ctx context.Context, x *running, kind string, b *raw.Body, status int) event.Event {
	op := event.Op{OpID: x.Key, Kind: kind, Level: "debug"}
	value, err := json.Marshal(rawValue{x.Attempt, status, b.Bytes, b.Truncated})
	if err == nil && len(b.Kept) > 0 {
		op.Body, err = t.r.log.PutBlob(ctx, bytes.NewReader(b.Kept))
	}
	if op.Value = value; err != nil {
		op.Level, op.Text = "error", "the body is not stored: "+clean(err)
	}
	return event.New(op)
}
