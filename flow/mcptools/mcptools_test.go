package mcptools_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/flow/mcptools"
	"github.com/convlog/convlog/store/memory"
)

type state struct{ Total, Answers int }

// agentOf is an agent that calls tools of a server, then says "done". A call is the name of a tool and
// its arguments, {"n":7} if it has none.
func agentOf(t *testing.T, s *mcptools.Server, calls ...string) (*flow.Agent[state], []flow.ToolSpec) {
	t.Helper()
	t.Cleanup(func() { s.Close() })
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var parts []event.Part
	for i, call := range calls {
		name, arguments, _ := strings.Cut(call, " ")
		parts = append(parts, event.ToolCall(fmt.Sprint("c", i), name, jsontext.Value(cmp.Or(arguments, `{"n":7}`))))
	}
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { log.Close() })
	model := flowtest.Script{flowtest.Say("", parts...), flowtest.Say("done")}
	return &flow.Agent[state]{Name: "a", Log: log, Turn: flow.Chat[state](model, flow.Request{}, tools...)}, tools
}

// finish runs the agent and approves each review. It returns the results by tool.
func finish(t *testing.T, a *flow.Agent[state]) map[string]event.Part {
	t.Helper()
	out, err := a.Run(t.Context(), "s", flow.Text("go"))
	var pause *flow.Hibernated
	for errors.As(err, &pause) {
		for _, r := range pause.Reviews {
			if _, err := flow.Decide(t.Context(), a.Log, "s", flow.Answer{Review: r, Decision: event.Approved}); err != nil {
				t.Fatal(err)
			}
		}
		h, resumed := a.Resume(t.Context(), flow.Ref{Session: "s"})
		if err = resumed; err == nil {
			out, err = h.Wait(t.Context())
		}
	}
	if err != nil || out.Status != flow.StatusFinished {
		t.Fatalf("%v %+v", err, out)
	}
	results := map[string]event.Part{}
	for _, m := range out.Messages {
		for _, p := range m.ToolResults() {
			results[p.Name] = p
		}
	}
	return results
}

func TestToolsOverEachTransport(t *testing.T) {
	handler := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer(t.TempDir()) }, nil))
	defer handler.Close()
	for name, s := range map[string]*mcptools.Server{
		"stdio": stdio(t.TempDir()),
		"http":  {Name: "test", Transport: func() mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: handler.URL} }},
		"in process": {Name: "test", Transport: func() mcp.Transport {
			here, there := mcp.NewInMemoryTransports()
			go newServer(t.TempDir()).Run(t.Context(), there)
			return here
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a, tools := agentOf(t, s, "look", "pay", "picture", "fail")
			for _, tool := range tools {
				reads := tool.Name != "pay" && tool.Name != "die_once"
				if reads != (tool.Class == event.EffectPure && tool.Review == nil) || !reads && (tool.Class != event.EffectUnsafeOnce || tool.Review == nil) {
					t.Errorf("%s: class %s, reviewed %v", tool.Name, tool.Class, tool.Review != nil)
				}
				if !strings.Contains(string(tool.Parameters), `"n"`) || tool.Description != "The tool "+tool.Name+"." {
					t.Errorf("%s: %s %s", tool.Name, tool.Description, tool.Parameters)
				}
			}
			results := finish(t, a)
			if got := results["look"].Content[0].Text; got != "saw 7" {
				t.Errorf("look: %q", got)
			}
			if got := results["pay"].Content[0].Text; got != "paid 7" {
				t.Errorf("pay: %q", got)
			}
			if got := results["picture"].Content; len(got) != 2 || got[0].Type != event.ImagePart || string(got[0].Data) != "png" || got[1].Text != "inner" {
				t.Errorf("picture: %+v", got)
			}
			if got := results["fail"]; !got.IsError || !strings.Contains(got.Content[0].Text, "no such file") {
				t.Errorf("fail: %+v", got)
			}
		})
	}
}

// A server that dies in a call: a tool that only reads is called again in a new process, any
// other tool is not, and the model is told that it may have run.
func TestAServerDiesInACall(t *testing.T) {
	dir := t.TempDir()
	s := stdio(dir)
	s.Rule = func(_ *mcp.Tool, spec *flow.ToolSpec) { spec.Retry.First = time.Millisecond }
	a, _ := agentOf(t, s, "die")
	if got := finish(t, a)["die"]; got.IsError || got.Content[0].Text != "alive" || lines(dir, "die") != 2 {
		t.Errorf("%+v after %d calls", got, lines(dir, "die"))
	}
	a, _ = agentOf(t, s, "die_once")
	got := finish(t, a)["die_once"]
	if !got.IsError || !strings.Contains(got.Content[0].Text, `MCP server "test": the server died during the call of tool "die_once", which may have run`) || lines(dir, "die_once") != 1 {
		t.Errorf("%+v after %d calls", got, lines(dir, "die_once"))
	}
	a, _ = agentOf(t, s, "look") // a new process
	if got := finish(t, a)["look"]; got.IsError {
		t.Errorf("%+v", got)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	dir := t.TempDir()
	s := stdio(dir)
	_, tools := agentOf(t, s)
	byName := map[string]flow.ToolSpec{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	var e *mcptools.Error
	if _, err := byName["die_once"].Run(t.Context(), event.ToolCall("c", "die_once", jsontext.Value(`{"n":1}`))); !errors.As(err, &e) || !e.Died || e.Tool != "die_once" {
		t.Errorf("%v", err)
	}
	for _, s := range []*mcptools.Server{{Name: "x"}, {Name: "x", Transport: func() mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: "http://127.0.0.1:1", MaxRetries: -1}
	}}} {
		if _, err := s.Tools(t.Context()); !errors.As(err, &e) || e.Server != "x" || e.Died {
			t.Errorf("%v", err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := byName["look"].Run(ended, event.ToolCall("c", "look", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A rule sees the tool as the server describes it, and has the last word.
func TestARuleDecides(t *testing.T) {
	s := stdio(t.TempDir())
	s.Rule = func(tool *mcp.Tool, spec *flow.ToolSpec) {
		spec.Name = "test_" + tool.Name
		if tool.Name == "pay" {
			spec.Class, spec.Review = event.EffectDedupe, nil
		}
	}
	a, _ := agentOf(t, s, "test_pay")
	if got := finish(t, a)["test_pay"]; got.IsError || got.Content[0].Text != "paid 7" {
		t.Errorf("%+v", got)
	}
}

// The example of the official SDK, built from its module.
func TestTheExampleOfTheSDK(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hello")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/examples/server/hello").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := &mcptools.Server{Name: "hello", Transport: func() mcp.Transport { return &mcp.CommandTransport{Command: exec.Command(path)} }}
	a, _ := agentOf(t, s, `greet {"name":"Ada"}`)
	if got := finish(t, a)["greet"]; got.IsError || got.Content[0].Text != "Hi Ada" {
		t.Errorf("%+v", got)
	}
}
