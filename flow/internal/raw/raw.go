// Package raw carries the captured calls of models from a transport to the effect that runs.
package raw

import (
	"context"
	"sync"
)

// Call is the bytes of a call of a model over HTTP, without headers.
type Call struct {
	Request, Response Body
	// Status is the status of the response; 0 if there was none.
	Status int
}

// Body is the beginning of the body of a request or a response.
type Body struct {
	Kept []byte
	// Bytes is the length of the body, as far as it was sent or read.
	Bytes int64
	// Truncated reports that Kept is only a part.
	Truncated bool
}

// Sink keeps the calls of one attempt of an effect.
type Sink struct {
	mu    sync.Mutex
	calls []Call
}

// Calls are the calls so far.
func (s *Sink) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

type key struct{}

// With is a context whose calls s keeps; nil keeps none.
func With(ctx context.Context, s *Sink) context.Context { return context.WithValue(ctx, key{}, s) }

// Keep gives a call to the sink of ctx; false if it has none.
func Keep(ctx context.Context, c Call) bool {
	s, _ := ctx.Value(key{}).(*Sink)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	return true
}
