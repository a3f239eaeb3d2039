// Package modeltest tests a model over HTTP against local servers: every way in which a
// stream can arrive, break off or be refused.
package modeltest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

// Suite describes a model and one answer of its server.
type Suite struct {
	// New makes the model for a server.
	New func(url string, client *http.Client) flow.Model
	// Stream is a streamed answer, with LF. Whole is the same answer without streaming.
	Stream, Whole string
	// Want is the message of the answer.
	Want event.Message
	// Check checks the body of a request.
	Check func(body []byte) error
	// Key is the key of the model.
	Key string
	// Fixed are parameters that no request may set. Broken are streams without an answer.
	Fixed, Broken []string
}

// Request is the request of all tests.
func Request() *flow.Request {
	call := event.ToolCall("c0", "shop:order", []byte(`{"id":"A1"}`))
	return &flow.Request{
		System: "Be brief.",
		Messages: []projection.Entry{
			{Message: event.Message{Role: event.User, Parts: []event.Part{event.Text("Where is A1?")}}},
			{Message: event.Message{Role: event.Assistant, Parts: []event.Part{call}}},
			{Message: event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c0", "shop:order", event.Text("lost"))}}},
		},
		Tools: []flow.ToolSpec{{Name: "shop:order", Description: "Look up an order."}, {Name: "refund", Parameters: []byte(`{"type":"object"}`)}},
	}
}

// Run runs all tests.
func Run(t *testing.T, s Suite) {
	t.Run("arrival", s.arrival)
	t.Run("ends of lines", s.lines)
	t.Run("cut", s.cut)
	t.Run("whole", s.whole)
	t.Run("request", s.request)
	t.Run("parameters", s.parameters)
	t.Run("refusals", s.refusals)
	t.Run("broken", s.broken)
	t.Run("no server", s.noServer)
	t.Run("redirect", s.redirect)
	t.Run("cancel", s.cancel)
	t.Run("concurrent", s.concurrent)
}

// Serve starts a server.
func Serve(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// Say answers with a stream.
func Say(w http.ResponseWriter, stream string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, stream) // a client that left is no concern of the server
}

// Ask asks the model and checks that the deltas are the message.
func Ask(t *testing.T, m flow.Model) (event.Message, error) {
	var deltas []eventlog.Delta
	r, err := m.Generate(t.Context(), Request(), func(d eventlog.Delta) { deltas = append(deltas, d) })
	if err == nil {
		checkDeltas(t, r.Message.Parts, deltas)
	}
	return r.Message, err
}

// checkDeltas checks that the deltas join to the parts.
func checkDeltas(t *testing.T, parts []event.Part, deltas []eventlog.Delta) {
	t.Helper()
	joined := make([]string, len(parts))
	for _, d := range deltas {
		if d.Part >= len(parts) || parts[d.Part].Type != d.Kind {
			t.Fatalf("delta %+v is of no part of %v", d, parts)
		}
		joined[d.Part] += d.Text
	}
	for i := range parts {
		want := parts[i].Text
		if parts[i].Type == event.ToolCallPart || parts[i].Type == event.ServerToolCallPart {
			want = string(parts[i].Arguments)
			if text, ok := rawjson.Text(parts[i].Arguments); ok {
				want = text // arguments that are no JSON
			}
		}
		if want != joined[i] && want != `{}` && parts[i].Type != event.OpaquePart {
			t.Errorf("the deltas of part %d are %q, not %q", i, joined[i], want)
		}
	}
}

// stride is the distance of the places at which a stream is split or cut.
func stride() int { return testsize.Pick(29, 11, 1) }

// pieces is a transport whose bodies arrive in pieces: the first one ends at a given
// byte, and all others have one byte or the whole rest.
type pieces struct {
	first int
	bytes bool
}

func (p pieces) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := http.DefaultTransport.RoundTrip(q)
	if err == nil {
		r.Body = &pieceReader{ReadCloser: r.Body, pieces: p}
	}
	return r, err
}

type pieceReader struct {
	io.ReadCloser
	pieces
}

func (r *pieceReader) Read(b []byte) (int, error) {
	switch {
	case r.first > 0:
		b = b[:min(len(b), r.first)]
	case r.bytes:
		b = b[:min(len(b), 1)]
	}
	n, err := r.ReadCloser.Read(b)
	r.first -= n
	return n, err
}

// A stream gives the same answer wherever the network splits it.
func (s *Suite) arrival(t *testing.T) {
	url := Serve(t, func(w http.ResponseWriter, _ *http.Request) { Say(w, s.Stream) })
	for first := 0; first < len(s.Stream); first += stride() {
		s.same(t, s.New(url, &http.Client{Transport: pieces{first: first}}))
	}
	s.same(t, s.New(url, &http.Client{Transport: pieces{bytes: true}}))
	slow := Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for part := range strings.SplitAfterSeq(s.Stream, "\n") {
			Say(w, part)
			w.(http.Flusher).Flush()
		}
	})
	s.same(t, s.New(slow, nil))
}

func (s *Suite) same(t *testing.T, m flow.Model) {
	t.Helper()
	got, err := Ask(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Want, got); diff != "" {
		t.Fatal(diff)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
}

// All ends of lines, comments, unknown fields, a byte order mark, and a missing blank line
// at the end are accepted.
func (s *Suite) lines(t *testing.T) {
	for name, stream := range map[string]string{
		"CRLF":          strings.ReplaceAll(s.Stream, "\n", "\r\n"),
		"CR":            strings.ReplaceAll(s.Stream, "\n", "\r"),
		"comments":      ": hello\n" + strings.ReplaceAll(s.Stream, "data:", ": ping\nid: 5\nretry: 10\ndata:"),
		"blank lines":   "\n\n" + strings.ReplaceAll(s.Stream, "\n\n", "\n\n\n"),
		"no space":      strings.ReplaceAll(s.Stream, "data: ", "data:"),
		"BOM":           "\ufeff" + s.Stream,
		"no last blank": strings.TrimRight(s.Stream, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			url := Serve(t, func(w http.ResponseWriter, _ *http.Request) { Say(w, stream) })
			s.same(t, s.New(url, nil))
			s.same(t, s.New(url, &http.Client{Transport: pieces{bytes: true}}))
		})
	}
}

// A stream that ends early gives an error that is worth another attempt, or the whole
// answer, at most without its usage.
func (s *Suite) cut(t *testing.T) {
	var mu sync.Mutex
	n, abort := 0, false
	url := Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		Say(w, s.Stream[:n])
		w.(http.Flusher).Flush()
		if abort {
			panic(http.ErrAbortHandler)
		}
	})
	failed := 0
	for at := 0; at < len(s.Stream); at += stride() {
		for _, how := range []bool{false, true} {
			mu.Lock()
			n, abort = at, how
			mu.Unlock()
			got, err := Ask(t, s.New(url, nil))
			if err != nil {
				failed++
				isBroken(t, err)
			} else if diff := cmp.Diff(s.Want, got, cmpopts.IgnoreFields(event.Message{}, "Usage", "Extra")); diff != "" {
				t.Fatalf("cut at byte %d: %s", at, diff)
			}
		}
	}
	if failed < len(s.Stream)/stride() {
		t.Errorf("%d cut streams failed", failed)
	}
}

// isBroken checks that the error is of an answer that broke off.
func isBroken(t *testing.T, err error) {
	t.Helper()
	e := refusal(t, err)
	if e.Status != http.StatusOK || e.Permanent() {
		t.Fatalf("error %q: status %d, permanent %v", e, e.Status, e.Permanent())
	}
}

// A server may ignore that a stream is asked for.
func (s *Suite) whole(t *testing.T) {
	url := Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\n"+s.Whole) })
	s.same(t, s.New(url, nil))
}

// The body of the request is valid.
func (s *Suite) request(t *testing.T) {
	url := Serve(t, func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = s.Check(body)
		}
		if err != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with %s: %v", q.Method, body, err)
		}
		Say(w, s.Stream)
	})
	s.same(t, s.New(url, nil))
}

// The context ends a call at once, also while the server is silent.
func (s *Suite) cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1)
	url := Serve(t, func(w http.ResponseWriter, q *http.Request) {
		Say(w, ": wait\n\n")
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-q.Context().Done()
	})
	go func() {
		<-asked
		cancel()
	}()
	_, err := s.New(url, nil).Generate(ctx, Request(), func(eventlog.Delta) {})
	if !cmp.Equal(err, context.Canceled, cmpopts.EquateErrors()) {
		t.Errorf("Generate = %v", err)
	}
}

// One model serves many goroutines.
func (s *Suite) concurrent(t *testing.T) {
	url := Serve(t, func(w http.ResponseWriter, _ *http.Request) { Say(w, s.Stream) })
	m := s.New(url, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if got, err := Ask(t, m); err != nil || !cmp.Equal(s.Want, got) {
					t.Errorf("Generate = %v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}
