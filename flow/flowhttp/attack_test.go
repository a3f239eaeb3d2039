package flowhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
)

// script is a model: call n is answered by element n.
type script struct {
	calls *atomic.Int64
	steps []func(emit func(eventlog.Delta)) (flow.Response, error)
}

func newScript(steps ...func(emit func(eventlog.Delta)) (flow.Response, error)) script {
	return script{new(atomic.Int64), steps}
}

func (m script) Generate(_ context.Context, _ *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	n := int(m.calls.Add(1)) - 1
	if n >= len(m.steps) {
		return flow.Response{}, errors.New("the script has ended")
	}
	return m.steps[n](emit)
}

func says(text string) func(func(eventlog.Delta)) (flow.Response, error) {
	return func(emit func(eventlog.Delta)) (flow.Response, error) {
		emit(eventlog.Delta{Kind: event.TextPart, Text: text})
		return flow.Response{Message: event.Message{Parts: []event.Part{event.Text(text)}, StopReason: "stop"}}, nil
	}
}

// fails is a call that fails for good, after some text.
func fails(text string) func(func(eventlog.Delta)) (flow.Response, error) {
	return func(emit func(eventlog.Delta)) (flow.Response, error) {
		if text != "" {
			emit(eventlog.Delta{Kind: event.TextPart, Text: text})
		}
		return flow.Response{}, errors.New("no more")
	}
}

// chunks sends a request, and returns what the stream says.
func (s *server) chunks(method, path, body string) (all []map[string]any) {
	s.t.Helper()
	r, _ := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	s.frames(r, func(f frame) bool {
		all = append(all, f.data)
		return f.data["type"] != "RUN_FINISHED" && f.data["type"] != "RUN_ERROR"
	})
	return all
}

func userChat(session, id, text string) string {
	return fmt.Sprintf(`{"id":%q,"messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":%q}]}]}`, session, id, text)
}

func lastType(all []map[string]any) any {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]["type"]
}

// A turn that fails at once is the answer to its input, though it left the path.
func TestFailedTurnInTheAISDK(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		s := newServer(t, newScript(fails("")), options{})
		if all := s.chunks("POST", "/ai-sdk", userChat("a", "one", "hello")); lastType(all) != "error" {
			t.Fatalf("%d: %v", i, all)
		}
	}
}

// The stream of an input whose turn was tried again has the answer, also after later turns.
func TestRetriedTurnInTheAISDK(t *testing.T) {
	t.Parallel()
	s := newServer(t, newScript(fails(""), says("first"), says("second")), options{})
	if all := s.chunks("POST", "/ai-sdk", userChat("a", "one", "hello")); lastType(all) != "error" {
		t.Fatalf("%v", all)
	}
	for range 2 {
		if all := s.chunks("POST", "/ai-sdk", userChat("a", "one", "hello")); lastType(all) != "finish" {
			t.Fatalf("%v", all)
		}
		s.chunks("POST", "/ai-sdk", userChat("a", "two", "hello"))
	}
}

// The greatest number is no event, and HEAD ends.
func TestHugeLastEventID(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	s.call("POST", "/sessions/a/inputs", `{"text":"hello"}`, 202)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/sessions/a/events", nil)
	r.Header.Set("Last-Event-ID", "9223372036854775807")
	s.status(r, 400)
	r, _ = http.NewRequestWithContext(t.Context(), "HEAD", s.URL+"/sessions/a/events", nil)
	s.status(r, 200)
}

// A session id may have each character that the log allows.
func TestSessionIDs(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	for _, id := range []string{"a/b", "..", ".", "%2F", "a?b#c", "ä", strings.Repeat("x", 200), "//", "a/../b", " "} {
		p := "/sessions/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		if got := s.call("POST", p+"/inputs", `{"id":"one","text":"hello"}`, 202); got["session"] != id {
			t.Errorf("%q: %v", id, got)
		}
		if got := s.call("GET", p, "", 200); got["session"] != id {
			t.Errorf("%q: %v", id, got)
		}
	}
	for _, id := range []string{strings.Repeat("x", 300), "a\nb", "\xff"} {
		p := "/sessions/" + url.PathEscape(id)
		s.call("POST", p+"/inputs", `{"id":"one","text":"hello"}`, 422)
		for _, path := range []string{p, p + "/events", p + "/snapshots", "/ai-sdk/" + url.PathEscape(id) + "/messages", "/ai-sdk/" + url.PathEscape(id) + "/stream"} {
			s.call("GET", path, "", 422)
		}
	}
	s.call("POST", "/sessions/a/inputs", `{"text":"a","text":"b"}`, 400)
	s.call("POST", "/sessions/a/inputs", "{\"text\":\"\xff\"}", 400)
}

// Events of AG-UI are well formed when an attempt fails after it said something.
func TestBrokenAttemptInAGUI(t *testing.T) {
	t.Parallel()
	broken := func(emit func(eventlog.Delta)) (flow.Response, error) {
		emit(eventlog.Delta{Kind: event.ReasoningPart, Text: "hm"})
		emit(eventlog.Delta{Part: 1, Kind: event.TextPart, Text: "void"})
		return flow.Response{}, &flow.ModelError{Message: "overloaded", Status: 503, Delay: time.Millisecond}
	}
	s := newServer(t, newScript(broken, says("good")), options{})
	all := s.chunks("POST", "/ag-ui", `{"threadId":"a","runId":"r","messages":[{"id":"one","role":"user","content":"hello"}]}`)
	open := map[any]bool{}
	for _, e := range all {
		kind, _ := e["type"].(string)
		name := fmt.Sprint(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(kind, "_START"), "_CONTENT"), "_END"), e["messageId"])
		switch {
		case strings.HasSuffix(kind, "MESSAGE_START"):
			open[name] = true
		case strings.HasSuffix(kind, "MESSAGE_CONTENT"):
			if !open[name] {
				t.Errorf("%v before its start", e)
			}
		case strings.HasSuffix(kind, "MESSAGE_END"):
			if !open[name] {
				t.Errorf("%v before its start", e)
			}
			delete(open, name)
		}
	}
	if len(open) > 0 || lastType(all) != "RUN_FINISHED" {
		t.Errorf("open %v: %v", open, all)
	}
}

// An answer that is sent again, since its stream was lost, has the same stream.
func TestDenialSentAgainInTheAISDK(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	s.chunks("POST", "/ai-sdk", userChat("a", "one", "please pay"))
	id := s.call("GET", "/sessions/a", "", 200)["reviews"].([]any)[0].(map[string]any)["interrupt_id"]
	body := fmt.Sprintf(`{"id":"a","messages":[{"id":"x","role":"assistant","parts":[{"type":"tool-pay","state":"approval-responded","toolCallId":"c","approval":{"id":%q,"approved":false}}]}]}`, id)
	first := fmt.Sprint(s.chunks("POST", "/ai-sdk", body))
	if again := fmt.Sprint(s.chunks("POST", "/ai-sdk", body)); again != first || !strings.Contains(again, "tool-output-denied") {
		t.Errorf("%v\n%v", first, again)
	}
}

// An answer that a process recorded before it was killed continues the turn when it is sent
// again.
func TestRecordedAnswerContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, jsonl.New(dir), chat{}, options{})
	s.chunks("POST", "/ai-sdk", userChat("a", "one", "please pay"))
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	s = serve(t, jsonl.New(dir), chat{}, options{})
	info, err := flow.Info(t.Context(), s.log, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Decide(t.Context(), s.log, "a", flow.Answer{Review: info.Approvals[0], Decision: event.Approved, By: "http"}); err != nil {
		t.Fatal(err)
	}
	s.call("POST", "/sessions/a/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"approved"}`, info.Approvals[0].InterruptID), 200)
	s.follow("a", "", func(f frame) bool { return f.data["type"] != "turn_completed" })
}

// Each review of a child is listed once, and an answer to it continues the parent.
func TestReviewOfAChild(t *testing.T) {
	t.Parallel()
	low := newAgent(nil, chat{})
	for _, at := range []string{"parent", "review"} {
		s := serveAgent(t, &flow.Agent[desk]{Name: "top", Log: eventlog.Open(memory.New()), Turn: func(ctx context.Context, t *flow.Turn[desk]) error {
			said, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (string, error) {
				out, err := flow.RunChild(ctx, low, t.Input(), flow.ChildOptions{})
				return out.Text(), err
			})
			if err != nil {
				return err
			}
			return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(said)}})
		}}, options{})
		chunks := s.chunks("POST", "/ai-sdk", userChat("a", "one", "please pay"))
		reviews := s.call("GET", "/approvals", "", 200)["reviews"].([]any)
		if len(reviews) != 1 {
			t.Fatalf("%v", reviews)
		}
		review := reviews[0].(map[string]any)
		asks := slices.ContainsFunc(chunks, func(c map[string]any) bool {
			data, ok := c["data"].(map[string]any)
			return ok && c["type"] == "data-review" && c["transient"] == true && data["interrupt_id"] == review["interrupt_id"]
		})
		if !asks {
			t.Errorf("the client does not know of the review: %v", chunks)
		}
		session := "a"
		if at == "review" {
			session = review["child_session"].(string)
		}
		s.call("POST", "/sessions/"+session+"/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"approved"}`, review["interrupt_id"]), 200)
		s.follow("a", "", func(f frame) bool { return f.data["type"] != "turn_completed" })
		if got := s.call("GET", "/sessions/a", "", 200); got["status"] != "finished" {
			t.Errorf("%v", got)
		}
	}
}
