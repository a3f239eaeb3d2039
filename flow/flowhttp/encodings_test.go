package flowhttp_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/flowhttp"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// encoding is a stream in the words of a client.
type encoding struct {
	name string
	path string
	// input is the body that sends an input.
	input func(session, id, text string) string
	// text is the member of a chunk that has text of the assistant.
	text string
	// completed, aborted and failed are the types of the last chunk, and of a member of it.
	completed, aborted, failed string
}

func agRun(session, id, text string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":"r","messages":[{"id":%q,"role":"user","content":%q}]}`, session, id, text)
}

var encodings = []encoding{
	{"ai-sdk", "/ai-sdk", userChat, "text-delta", "finish stop", "abort", "error"},
	{"ag-ui", "/ag-ui", agRun, "TEXT_MESSAGE_CONTENT", "RUN_FINISHED success", "RUN_FINISHED cancelled", "RUN_ERROR"},
}

// eachEncoding runs a test with each encoding.
func eachEncoding(t *testing.T, f func(t *testing.T, e encoding)) {
	t.Parallel()
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) { f(t, e) })
	}
}

// said is the text of a stream.
func (e *encoding) said(all []map[string]any) string {
	var b strings.Builder
	for _, c := range all {
		if c["type"] == e.text {
			b.WriteString(c["delta"].(string))
		}
	}
	return b.String()
}

// ending is the type of the last chunk, with its reason.
func ending(all []map[string]any) string {
	if len(all) == 0 {
		return "nothing"
	}
	last := all[len(all)-1]
	out := fmt.Sprint(last["type"])
	if reason, ok := last["finishReason"]; ok {
		out += fmt.Sprint(" ", reason)
	}
	if o, ok := last["outcome"].(map[string]any); ok {
		out += fmt.Sprint(" ", o["type"])
	}
	return out
}

// begin sends a request, and returns its chunks when they are all there. It returns itself when
// the header of the answer is.
func (s *server) begin(method, path, body string) (rest func() []map[string]any) {
	s.t.Helper()
	r, _ := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return func() (all []map[string]any) {
		s.read(answer, func(f frame) bool {
			all = append(all, f.data)
			return true
		})
		return all
	}
}

// wait waits for an event of a session.
func (s *server) wait(session string, kind event.Type, n int) {
	s.t.Helper()
	for e, err := range s.log.Watch(s.t.Context(), session, 1) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Type.Name() == kind {
			if n--; n == 0 {
				return
			}
		}
	}
}

// A client has the header of its answer while its input waits for another turn.
func TestStreamBeforeItsTurn(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		pace := make(chan struct{})
		s := newServer(t, chat{pace}, options{})
		first := s.begin("POST", e.path, e.input("a", "one", "first"))
		second := s.begin("POST", e.path, e.input("a", "two", "second"))
		close(pace)
		for i, rest := range []func() []map[string]any{first, second} {
			all := rest()
			if got, want := e.said(all), []string{"You said: first", "You said: second"}[i]; got != want || ending(all) != e.completed {
				t.Errorf("%q, want %q: %v", got, want, all)
			}
		}
	})
}

// An input that steers a turn ends the stream of the input before it. The answer to it has its
// own stream, and its own message.
func TestSteeredTurn(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		pace := make(chan struct{})
		s := newServer(t, chat{pace}, options{})
		first := s.begin("POST", e.path, e.input("a", "one", "first"))
		s.wait("a", event.StepStarted, 1)
		s.call("POST", "/sessions/a/inputs", `{"id":"two","text":"second","steer":true}`, 202)
		close(pace)
		if all := first(); e.said(all) != "You said: first" || lastType(all) == e.failed {
			t.Errorf("%v", all)
		}
		for range 2 { // also when the turn has ended
			if all := s.begin("POST", e.path, e.input("a", "two", "second"))(); e.said(all) != "You said: second" || ending(all) != e.completed {
				t.Errorf("%v", all)
			}
		}
		s.wait("a", event.TurnCompleted, 1)
		s.wantMessages("a", "user one: first", "assistant: You said: first", "user two: second", "assistant: You said: second")
	})
}

// wantMessages compares the messages that a page of the AI SDK begins with. Each has its own id.
func (s *server) wantMessages(session string, want ...string) {
	s.t.Helper()
	ids := map[string]bool{}
	var got []string
	for _, m := range s.call("GET", "/ai-sdk/"+session+"/messages", "", 200)["messages"].([]any) {
		m := m.(map[string]any)
		id, text := m["id"].(string), ""
		if ids[id] {
			s.t.Errorf("two messages have the id %s", id)
		}
		ids[id] = true
		for _, p := range m["parts"].([]any) {
			if p := p.(map[string]any); p["type"] == "text" {
				text += p["text"].(string)
			}
		}
		if m["role"] == "user" {
			got = append(got, fmt.Sprintf("user %s: %s", id, text))
		} else {
			got = append(got, fmt.Sprintf("assistant: %s", text))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("got %q, want %q", got, want)
	}
}

// The messages of one input have ids of their own.
func TestInputOfSeveralMessages(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	s.call("POST", "/sessions/a/inputs", `{"id":"one","messages":[{"role":"user","parts":[{"type":"text","text":"a"}]},{"role":"user","parts":[{"type":"text","text":"b"}]}]}`, 202)
	s.wait("a", event.TurnCompleted, 1)
	all := s.call("GET", "/ai-sdk/a/messages", "", 200)["messages"].([]any)
	if len(all) != 3 || all[0].(map[string]any)["id"] != "one" || all[1].(map[string]any)["id"] == "one" {
		t.Errorf("%v", all)
	}
	run := s.begin("POST", "/ag-ui", agRun("a", "two", "c"))()
	ids := map[any]bool{}
	for _, m := range run[len(run)-2]["messages"].([]any) {
		id := m.(map[string]any)["id"]
		if ids[id] {
			t.Errorf("two messages have the id %v", id)
		}
		ids[id] = true
	}
}

// A turn that a person aborts ends its stream.
func TestAbortedTurn(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		s := newServer(t, chat{make(chan struct{})}, options{})
		rest := s.begin("POST", e.path, e.input("a", "one", "hello"))
		s.wait("a", event.StepStarted, 1)
		s.call("POST", "/sessions/a/abort", `{"reason":"enough"}`, 200)
		if all := rest(); ending(all) != e.aborted {
			t.Errorf("%v", all)
		}
	})
}

// An event that is erased while its turn streams ends no stream, and is in none that begins
// later.
func TestErasureDuringAStream(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		pace := make(chan struct{})
		s := newServer(t, chat{pace}, options{})
		s.begin("POST", "/ai-sdk", userChat("a", "zero", "please pay"))
		pace <- struct{}{}
		rest := s.begin("POST", e.path, e.input("a", "one", "PIN 4711"))
		s.wait("a", event.StepStarted, 1)
		for ev, err := range s.log.Read(t.Context(), "a", eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type.Name() == event.MessageAdded {
				if _, err := erase.Redact(t.Context(), s.log, "a", []int64{ev.Seq}); err != nil {
					t.Fatal(err)
				}
			}
		}
		close(pace)
		s.wait("a", event.TurnHibernated, 1)
		id := s.call("GET", "/sessions/a", "", 200)["reviews"].([]any)[0].(map[string]any)["interrupt_id"]
		s.call("POST", "/sessions/a/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"denied"}`, id), 200)
		if all := rest(); ending(all) != e.completed {
			t.Errorf("%v", all)
		}
	})
}

// After a rewind the stream and the messages are those of the path, and a fork has its own.
func TestRewoundAndForkedSessions(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		s := newServer(t, chat{}, options{})
		for i, text := range []string{"first", "second"} {
			s.begin("POST", e.path, e.input("a", fmt.Sprint("in", i), text))()
			s.wait("a", event.RunReleased, i+1)
		}
		if _, err := fork.At(t.Context(), s.log, "a", fork.AtTurn(0), fork.Options{ID: "b"}); err != nil {
			t.Fatal(err)
		}
		if _, err := fork.Rewind(t.Context(), s.log, "a", fork.AtTurn(0)); err != nil {
			t.Fatal(err)
		}
		for _, session := range []string{"a", "b"} {
			s.wantMessages(session, "user in0: first", "assistant: You said: first")
			if all := s.begin("GET", "/ai-sdk/"+session+"/stream", "")(); encodings[0].said(all) != "You said: first" || ending(all) != encodings[0].completed {
				t.Errorf("%v", all)
			}
			if all := s.begin("POST", e.path, e.input(session, "in2", "third"))(); e.said(all) != "You said: third" || ending(all) != e.completed {
				t.Errorf("%v", all)
			}
			s.wantMessages(session, "user in0: first", "assistant: You said: first", "user in2: third", "assistant: You said: third")
		}
	})
}

// A log that is closed ends its streams with an error.
func TestClosedLogEndsStreams(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		s := newServer(t, chat{make(chan struct{})}, options{})
		rest := s.begin("POST", e.path, e.input("a", "one", "hello"))
		queued := s.begin("POST", e.path, e.input("a", "two", "hello"))
		own := s.begin("GET", "/sessions/a/events", "")
		s.wait("a", event.StepStarted, 1)
		if err := s.log.Close(); err != nil {
			t.Fatal(err)
		}
		for _, rest := range []func() []map[string]any{rest, queued} {
			if all := rest(); lastType(all) != e.failed {
				t.Errorf("%v", all)
			}
		}
		if all := own(); len(all) == 0 || all[len(all)-1]["status"] != 503.0 {
			t.Errorf("%v", all)
		}
	})
}

// Streams work over HTTP/2.
func TestHTTP2(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		log := eventlog.Open(memory.New())
		s := &server{httptest.NewUnstartedServer(flowhttp.New(newAgent(log, chat{}), options{})), t, log}
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(func() { log.Close(); s.Close() })
		own := s.begin("POST", e.path, e.input("a", "one", "hello"))
		if all := own(); e.said(all) != "You said: hello" || ending(all) != e.completed {
			t.Errorf("%v", all)
		}
		n := 0
		s.follow("a", "", func(f frame) bool {
			n++
			return f.data["type"] != "run_released"
		})
		if n == 0 {
			t.Error("no frame")
		}
	})
}

// The newest turn of a long session streams without the events before it.
func TestLongSession(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e encoding) {
		reads := [2]int64{}
		for i, n := range []int{100, testsize.Pick(400, 4_000, 100_000)} {
			data := memory.New()
			s := serve(t, data, chat{}, options{})
			s.begin("POST", e.path, e.input("a", "zero", "hello"))()
			s.wait("a", event.RunReleased, 1)
			for n > 0 {
				batch := make([]event.Event, min(n, 1000))
				for i := range batch {
					batch[i] = event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("old")}})
				}
				if _, err := s.log.Append(t.Context(), "a", eventlog.Any(), batch...); err != nil {
					t.Fatal(err)
				}
				n -= len(batch)
			}
			s.begin("POST", e.path, e.input("a", "one", "hello"))()
			s.wait("a", event.RunReleased, 2)
			store := &counted{Store: data.Handle()} // another process: only its reads count
			if all := serve(t, store, chat{}, options{}).begin("GET", "/ai-sdk/a/stream", "")(); encodings[0].said(all) != "You said: hello" {
				t.Errorf("%v", all)
			}
			reads[i] = store.read.Load()
		}
		if reads[1] > 2*reads[0] {
			t.Errorf("a stream reads %d events of a short session and %d of a long one", reads[0], reads[1])
		}
	})
}

// counted counts the events that are read.
type counted struct {
	eventlog.Store
	read atomic.Int64
}

func (c *counted) Unwrap() eventlog.Store { return c.Store }

func (c *counted) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.Store.Read(ctx, session, r) {
			c.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}
