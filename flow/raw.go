package flow

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// RawCall is the bytes of a call of a model over HTTP, without headers.
type RawCall struct {
	Request, Response RawBody
	// Status is the status of the response; 0 if there was none.
	Status int
}

// RawBody is the beginning of the body of a request or a response.
type RawBody struct {
	Kept []byte
	// Bytes is the length of the body, as far as it was sent or read.
	Bytes int64
	// Truncated reports that Kept is only a part.
	Truncated bool
}

// KeepRaw records a call with the effect that runs with ctx, as op_logged events with
// bodies in the append of the effect's result, or of the end of its attempt. The bodies
// can be erased apart from the effect (erase.Raw). Outside an effect it does nothing and
// returns false. It may be called concurrently. c must not be modified afterwards.
func KeepRaw(ctx context.Context, c RawCall) bool {
	x, ok := runningOf(ctx)
	if !ok {
		return false
	}
	x.turn.r.mu.Lock()
	defer x.turn.r.mu.Unlock()
	x.raw = append(x.raw, c)
	return true
}

// The kinds of an op_logged event with the body of a model call.
const (
	rawRequest  = "raw_request"
	rawResponse = "raw_response"
)

// rawEvents stores the bodies that were captured in an attempt. A body that cannot be
// stored is an error in its event, and not of the effect.
func (t *turn) rawEvents(ctx context.Context, x *running) (events []event.Event) {
	t.r.mu.Lock()
	calls := x.raw
	t.r.mu.Unlock()
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

func (t *turn) rawEvent(ctx context.Context, x *running, kind string, b *RawBody, status int) event.Event {
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
