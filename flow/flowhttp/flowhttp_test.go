package flowhttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowhttp"
	"github.com/convlog/convlog/store/memory"
)

// desk is the state of the agent.
type desk struct{ Turns int }

// chat is a model: it says what it was told, word by word, and calls pay if the word occurs.
// Each word waits for a value of pace, if there is one.
type chat struct{ pace chan struct{} }

func (m chat) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	last := &r.Messages[len(r.Messages)-1].Message
	if last.Role == event.Tool {
		return flow.Response{Message: event.Message{Parts: []event.Part{event.Text("Done: " + last.Parts[0].Content[0].Text)}, StopReason: "stop"}}, nil
	}
	answer := "You said: " + last.Text()
	words := strings.SplitAfter(answer, " ")
	emit(eventlog.Delta{Part: 0, Kind: event.ReasoningPart, Text: "Let me think."})
	for _, word := range words {
		if m.pace != nil {
			select {
			case <-m.pace:
			case <-ctx.Done():
				return flow.Response{}, ctx.Err()
			}
		}
		emit(eventlog.Delta{Part: 1, Kind: event.TextPart, Text: word})
	}
	parts := []event.Part{event.Reasoning("Let me think.", ""), event.Text(answer)}
	if strings.Contains(last.Text(), "pay") {
		parts = append(parts, event.ToolCall("call-"+fmt.Sprint(len(r.Messages)), "pay", jsontext.Value(`{"cents":1250}`)))
	}
	return flow.Response{Message: event.Message{Parts: parts, StopReason: "stop"}}, nil
}

func newAgent(l *eventlog.Log, m flow.Model) *flow.Agent[desk] {
	pay := flow.Tool("pay", "Pays.", func(context.Context, struct {
		Cents int `json:"cents"`
	}) (string, error) {
		return "paid", nil
	}, flow.Once, flow.Review("Pay?"))
	run := flow.Chat[desk](m, flow.Request{}, pay)
	return &flow.Agent[desk]{Name: "desk", Log: l, Turn: func(ctx context.Context, t *flow.Turn[desk]) error {
		if err := t.Update(func(d *desk) error { d.Turns++; return nil }); err != nil {
			return err
		}
		return run(ctx, t)
	}}
}

type options = flowhttp.Options

type server struct {
	*httptest.Server
	t   *testing.T
	log *eventlog.Log
}

func newServer(t *testing.T, m flow.Model, o options) *server {
	t.Helper()
	return serve(t, memory.New(), m, o)
}

// serve begins a server over a store.
func serve(t *testing.T, store eventlog.Store, m flow.Model, o options) *server {
	t.Helper()
	l := eventlog.Open(store)
	return serveAgent(t, newAgent(l, m), o)
}

// serveAgent begins a server of an agent.
func serveAgent(t *testing.T, a *flow.Agent[desk], o options) *server {
	t.Helper()
	l := a.Log
	s := &server{httptest.NewServer(flowhttp.New(a, o)), t, l}
	t.Cleanup(func() {
		l.Close() // ends the streams
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// call sends a request, and decodes the answer.
func (s *server) call(method, path, body string, want int) map[string]any {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		s.t.Fatalf("%s %s: status %d, want %d: %s %v", method, path, answer.StatusCode, want, text, err)
	}
	d, err := readDocument()
	if err == nil {
		err = d.CheckAnswer(method, path, answer.StatusCode, answer.Header, text)
	}
	if err != nil {
		s.t.Errorf("%s %s: %s: %v", method, path, text, err)
	}
	v := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &v); err != nil {
			s.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	return v
}

type frame struct {
	id, event string
	data      map[string]any
}

// frames yields the frames of a stream until yield returns false.
func (s *server) frames(r *http.Request, yield func(frame) bool) {
	s.t.Helper()
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.read(answer, yield)
}

// read yields the frames of an answer until yield returns false.
func (s *server) read(answer *http.Response, yield func(frame) bool) {
	s.t.Helper()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("status %d: %s", answer.StatusCode, text)
	}
	var f frame
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			if value == "[DONE]" {
				return
			}
			if err := json.Unmarshal([]byte(value), &f.data); err != nil {
				s.t.Fatal(err)
			}
		case "":
			if f.data != nil && !yield(f) {
				return
			}
			f = frame{}
		}
	}
}

func (s *server) follow(session, lastEventID string, yield func(frame) bool) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/sessions/"+session+"/events", nil)
	r.Header.Set("Last-Event-ID", lastEventID)
	s.frames(r, yield)
}

func TestATurn(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	got := s.call("POST", "/sessions/a/inputs", `{"id":"one","text":"please pay"}`, 202)
	if got["input"] != "one" || got["session"] != "a" || got["snapshot"] == "" {
		t.Errorf("%v", got)
	}
	s.call("POST", "/sessions/a/inputs", `{"id":"one","text":"please pay"}`, 202)
	n, types := 0, map[string]int{}
	s.follow("a", "", func(f frame) bool {
		if f.event != "" {
			return true
		}
		if n++; f.id != fmt.Sprint(n) || f.data["seq"] != float64(n) {
			t.Errorf("frame %d: %v", n, f)
		}
		name := f.data["type"].(string)
		types[name]++
		return name != "turn_hibernated"
	})
	if types["turn_started"] != 1 || types["approval_requested"] != 1 {
		t.Errorf("%v", types)
	}
	state := s.call("GET", "/sessions/a", "", 200)
	reviews := state["reviews"].([]any)
	if state["status"] != "hibernated" || len(reviews) != 1 {
		t.Fatalf("%v", state)
	}
	review := reviews[0].(map[string]any)
	if review["prompt"] != "Pay?" || review["arguments"].(map[string]any)["cents"] != 1250.0 {
		t.Errorf("%v", review)
	}
	if all := s.call("GET", "/approvals", "", 200)["reviews"].([]any); len(all) != 1 {
		t.Errorf("%v", all)
	}
	s.call("POST", "/sessions/a/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"approved"}`, review["interrupt_id"]), 200)
	s.call("POST", "/sessions/a/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"approved"}`, review["interrupt_id"]), 200)
	s.call("POST", "/sessions/a/answers", fmt.Sprintf(`{"interrupt_id":%q,"decision":"denied"}`, review["interrupt_id"]), 409)
	s.follow("a", fmt.Sprint(n), func(f frame) bool {
		if f.event == "" {
			if n++; f.id != fmt.Sprint(n) {
				t.Errorf("frame %d: %v", n, f)
			}
		}
		return f.data["type"] != "turn_completed"
	})
	list := s.call("GET", "/sessions/a/snapshots", "", 200)["snapshots"].([]any)
	if len(list) == 0 {
		t.Fatal("no snapshots")
	}
	newest := list[0].(map[string]any)
	one := s.call("GET", "/sessions/a/snapshots/latest", "", 200)
	if one["snapshot"] != newest["snapshot"] || one["state"].(map[string]any)["Turns"] != 1.0 || len(one["messages"].([]any)) != 4 {
		t.Errorf("%v", one)
	}
}
