// Package capture records the bodies of requests and responses of models over HTTP with the
// effects that sent them.
package capture

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/convlog/convlog/flow/internal/raw"
)

// Call is the bytes of a call of a model over HTTP, without headers.
type Call = raw.Call

// Body is the beginning of the body of a request or a response.
type Body = raw.Body

// Keep records a call with the effect of package flow that runs with ctx, as op_logged events
// with bodies in the append of the effect's result, or of the end of its attempt. The bodies
// can be erased apart from the effect (erase.Raw). Outside an effect it does nothing and
// returns false. It may be called concurrently. c must not be modified afterwards.
func Keep(ctx context.Context, c Call) bool { return raw.Keep(ctx, c) }

// Transport is an http.RoundTripper that captures the bodies of requests and responses.
// It passes each piece of a body on at once. It does not capture headers and addresses,
// which may have keys, and a key that a server repeats in its answer becomes [key]. It may
// be used concurrently; do not modify it after the first use.
//
//	client := &http.Client{Transport: &capture.Transport{}}
//	model := openai.Client{HTTP: client, …}
type Transport struct {
	// Base sends the requests; http.DefaultTransport if nil.
	Base http.RoundTripper
	// Max is the number of bytes kept of each body; 8 MiB if 0.
	Max int
	// Capture gets each call once its response was read to the end or closed, or the
	// request failed. ctx is the context of the request. Keep if nil.
	Capture func(ctx context.Context, c Call)
}

// defaultMax is the default of Transport.Max.
const defaultMax = 8 << 20

// RoundTrip implements http.RoundTripper.
func (r *Transport) RoundTrip(q *http.Request) (*http.Response, error) {
	limit := r.Max
	if limit <= 0 {
		limit = defaultMax
	}
	request := &tap{max: limit, keys: keysOf(q.Header)}
	answer, err := cmp.Or(r.Base, http.DefaultTransport).RoundTrip(request.on(q))
	if err != nil {
		r.capture(q.Context(), Call{Request: request.body()})
		return nil, err
	}
	response := &tap{max: limit, keys: request.keys, ReadCloser: answer.Body}
	response.ended = sync.OnceFunc(func() {
		r.capture(q.Context(), Call{Request: request.body(), Response: response.body(), Status: answer.StatusCode})
	})
	answer.Body = response
	return answer, nil
}

func (r *Transport) capture(ctx context.Context, c Call) {
	if r.Capture == nil {
		Keep(ctx, c)
	} else {
		r.Capture(ctx, c)
	}
}

// tap keeps the first bytes that are read from a body.
type tap struct {
	io.ReadCloser
	max   int
	keys  [][]byte // are hidden
	ended func()   // called at the end of the body; nil for a request

	mu    sync.Mutex
	kept  []byte
	total int64
}

// on returns the request with its body read through the tap.
func (t *tap) on(q *http.Request) *http.Request {
	if q.Body == nil || q.Body == http.NoBody {
		return q
	}
	tapped := q.WithContext(q.Context()) // a copy
	t.ReadCloser, tapped.Body = q.Body, t
	if q.GetBody != nil {
		tapped.GetBody = func() (io.ReadCloser, error) { // the request is sent again
			body, err := q.GetBody()
			if err != nil {
				return nil, err
			}
			t.mu.Lock()
			t.kept, t.total = nil, 0
			t.mu.Unlock()
			return &again{t, body}, nil
		}
	}
	return tapped
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	t.keep(b[:n])
	if err != nil && t.ended != nil {
		t.ended()
	}
	return n, err
}

func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	if t.ended != nil {
		t.ended()
	}
	return err
}

func (t *tap) keep(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(b))
	t.kept = append(t.kept, b[:min(len(b), t.max-len(t.kept))]...)
}

// body returns a copy of the bytes that were read so far.
func (t *tap) body() Body {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := bytes.Clone(t.kept)
	for _, key := range t.keys {
		kept = bytes.ReplaceAll(kept, key, []byte("[key]"))
	}
	return Body{Kept: kept, Bytes: t.total, Truncated: t.total > int64(len(t.kept))}
}

// keysOf are the keys in the headers of a request.
func keysOf(h http.Header) (keys [][]byte) {
	for _, name := range []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		for _, value := range h[name] {
			if words := strings.Fields(value); len(words) > 0 {
				keys = append(keys, []byte(words[len(words)-1]))
			}
		}
	}
	return keys
}

// again is the body of a request that is sent again.
type again struct {
	tap *tap
	io.ReadCloser
}

func (a *again) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	a.tap.keep(b[:n])
	return n, err
}
