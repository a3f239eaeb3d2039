package codex_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/projection"
)

// id is the session id of the n-th fixture. A later fixture has a greater n.
func id(n string) string { return "0190000" + n + "-0000-7000-8000-000000000000" }

func fixture(name string) string {
	return filepath.Join("..", "..", "testdata", "transcripts", "codex", name+".jsonl")
}

func fixtures(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, fixture(name))
	}
	return paths
}

// load imports fixtures in one call without an error.
func load(t *testing.T, log *eventlog.Log, names ...string) interop.Table {
	t.Helper()
	return importtest.Table(t, log, codex.Format{}, fixtures(names...)...)
}

// loadText imports text as a file.
func loadText(t *testing.T, log *eventlog.Log, text string) (interop.Result, error) {
	t.Helper()
	return codex.Format{}.Import(t.Context(), log, importtest.Source("f", text))
}

func readFixture(t testing.TB, name string) string {
	t.Helper()
	return importtest.ReadFile(t, fixture(name))
}

// path returns the events of the active path, except raw ones.
func path(t *testing.T, log *eventlog.Log, session string) (all []event.Event) {
	t.Helper()
	for _, e := range importtest.ActivePath(t, log, session) {
		if !strings.HasPrefix(string(e.Type), "codex:") {
			all = append(all, e)
		}
	}
	return all
}

// outline returns a short line for each event of path.
func outline(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range path(t, log, session) {
		lines = append(lines, draw(t, &e))
	}
	return lines
}

func draw(t *testing.T, e *event.Event) string {
	t.Helper()
	if h, ok, _ := event.Decode[event.HeadMove](e); ok {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	if s, ok, _ := event.Decode[event.StepCompletion](e); ok {
		return fmt.Sprintf("step %d: %d+%d in, %d out", s.Step, s.Usage.InputTokens, s.Usage.CacheReadTokens, s.Usage.OutputTokens)
	}
	if s, ok, _ := event.Decode[event.Session](e); ok {
		return strings.TrimSpace(string(e.Type) + " " + s.Title)
	}
	if c, ok, _ := event.Decode[event.TurnCompletion](e); ok {
		return strings.TrimSpace("turn " + string(c.Status) + " " + c.StopReason + c.Error)
	}
	if c, ok, _ := event.Decode[event.Child](e); ok {
		return string(e.Type) + " " + c.ChildID
	}
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return string(e.Type)
	}
	return drawMessage(&m)
}

func drawMessage(m *event.Message) string {
	line := string(m.Role)
	for _, p := range m.Parts {
		switch p.Type {
		case event.TextPart:
			line += " " + strings.TrimSpace(titles.Of(p.Text))
		case event.ToolCallPart, event.ServerToolCallPart:
			line += " calls " + p.Name
		case event.ToolResultPart:
			line += " result of " + p.Name
		default:
			line += " " + string(p.Type)
		}
	}
	return line
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, codex.Format{}, "x.jsonl", map[string]bool{
		readFixture(t, "whole"):                                          true,
		readFixture(t, "bare"):                                           true,
		readFixture(t, "whole")[:300]:                                    true,
		`{"type":"session_meta","paylo`:                                  false,
		`{"type":"user","sessionId":"s"}`:                                false,
		`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z"}`: false,
		"\n\nno JSON":                                                    false,
		"":                                                               false,
	})
}

// Forks and sub-agents need the session that they come from.
func TestDeclare(t *testing.T) {
	declared := func(name, content string) interop.IDs {
		return codex.Format{}.Declare(importtest.Source(name, content))
	}
	parent := declared("parent", readFixture(t, "parent")).Owns
	for name, needs := range map[string][]string{
		"parent": nil, "whole": nil, "bare": nil, "agent-fresh": parent, "agent-forked": parent, "fork": parent,
	} {
		got := declared(name, readFixture(t, name))
		if len(got.Owns) == 0 || !slices.Equal(got.Needs, needs) || len(needs) > 0 && got.Owns[0] == needs[0] {
			t.Errorf("%s declares %+v, want needs %q", name, got, needs)
		}
	}
	long := `{"type":"session_meta","payload":{"id":"c","forked_from_id":"p","instructions":"` + strings.Repeat("x", 64<<10) + `"}}`
	if got := declared("f", long); !slices.Equal(got.Owns, []string{"c", "codex:copies/p"}) || !slices.Equal(got.Needs, []string{"p"}) {
		t.Errorf("a header longer than the head declares %+v", got)
	}
	if got := declared("f", "{}\n[]\nno JSON"); len(got.Owns) > 0 {
		t.Errorf("no header declares %+v", got)
	}
}

func TestWhole(t *testing.T) {
	log := importtest.NewLog(t)
	total := load(t, log, "whole").Rows[0].Result
	if total.Records != 49 || total.Imported != 33 || total.Raw != 16 || total.Events != 49 || total.Skipped != 0 || total.Present != 0 {
		t.Errorf("result is %+v", total)
	}
	importtest.Same(t, "active path", []string{
		"session_started Tabulate the tides of Brest.",
		"turn_started",
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"session_updated",
		"user Tabulate the tides of Brest.",
		"assistant reasoning",
		"assistant I look at the table, and at the gauge.",
		"assistant calls exec_command",
		"assistant calls exec_command",
		"step 0: 1000+0 in, 80 out",
		"tool result of exec_command",
		"tool result of exec_command",
		"assistant calls apply_patch",
		"tool result of apply_patch",
		"step 1: 300+900 in, 60 out",
		"assistant calls web_search",
		"assistant High water is at 3.2 m.",
		"step 2: 300+1200 in, 40 out",
		"turn completed",
		"session_updated Tides of Brest",
		"turn_started",
		"session_updated",
		"user And this gauge? image",
		"assistant calls local_shell",
		"step 0: 500+1500 in, 20 out",
		"tool result of local_shell",
		"user <turn_aborted>",
		"turn interrupted interrupted",
		"session_updated",
		"turn_started",
		"user Go on.",
		"turn failed stream closed",
	}, outline(t, log, id("1")))
}

// messages returns the messages of the active path.
func messages(t *testing.T, log *eventlog.Log, session string) (all []event.Message) {
	t.Helper()
	for _, e := range path(t, log, session) {
		if m, ok, err := event.Decode[event.Message](&e); ok && err == nil {
			all = append(all, m)
		}
	}
	return all
}

func TestMessages(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole")
	all := messages(t, log, id("1"))
	groups := map[string][]string{}
	var order []string
	for i := range all {
		m := &all[i]
		if m.Role != event.Assistant {
			continue
		}
		if groups[m.Group] == nil {
			order = append(order, m.Group)
		}
		groups[m.Group] = append(groups[m.Group], drawMessage(m)+" by "+m.Provider+" "+m.Model)
	}
	var got [][]string
	for _, g := range order {
		got = append(got, groups[g])
	}
	const by = " by openai gpt-5.4"
	importtest.Same(t, "responses", [][]string{
		{"assistant reasoning" + by, "assistant I look at the table, and at the gauge." + by, "assistant calls exec_command" + by, "assistant calls exec_command" + by},
		{"assistant calls apply_patch" + by},
		{"assistant calls web_search" + by, "assistant High water is at 3.2 m." + by},
		{"assistant calls local_shell by openai gpt-5.5"},
	}, got)
	if p := all[3].Parts[0]; p.Encrypted != "gAAAAA==" || p.Text != "**Looking for data**" || p.ID != "rs_1" {
		t.Errorf("reasoning is %+v", p)
	}
	if m := all[4]; string(m.Extra) != `{"phase":"commentary"}` {
		t.Errorf("extra is %s", m.Extra)
	}
	if p := all[5].Parts[0]; string(p.Arguments) != `{"cmd":"cat tides.csv"}` || p.CallID != "c1" {
		t.Errorf("call is %+v with %s", p, p.Arguments)
	}
	if p := all[9].Parts[0]; string(p.Arguments) != `"*** Begin Patch\n*** End Patch"` || string(all[9].Extra) != `{"type":"custom_tool_call","status":"completed"}` {
		t.Errorf("call is %s, extra %s", p.Arguments, all[9].Extra)
	}
	shown := all[10].Parts[0].Content
	if len(shown) != 2 || shown[1].Type != event.ImagePart || shown[1].Blob.Bytes != 70 || shown[1].MediaType != "image/png" {
		t.Errorf("result is %+v", shown)
	}
	if p := all[13].Parts[1]; p.Blob != shown[1].Blob || string(p.Extra) != `{"detail":"high"}` {
		t.Errorf("image is %+v", p)
	}
	if p := all[15].Parts[0]; !p.Interrupted || !p.IsError {
		t.Errorf("result is %+v", p)
	}
}

// sessionInfo returns the projection of the session.
func sessionInfo(t *testing.T, log *eventlog.Log, session string) projection.SessionInfo {
	t.Helper()
	view, err := projection.Load(t.Context(), log, session, projection.Info())
	if err != nil {
		t.Fatal(err)
	}
	return view.State
}

func TestSessionFacts(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole", "agent-fresh", "parent")
	got := sessionInfo(t, log, id("1"))
	importtest.Same(t, "labels", map[string]string{
		"approval_policy": "on-request", "effort": "high", "git_branch": "gauge", "git_commit": "77aa", "git_repository": "https://example.org/tide.git",
		"model": "gpt-5.5", "model_provider": "openai", "originator": "codex-tui", "sandbox": "workspace-write", "source": "cli",
	}, got.Labels)
	if got.Title != "Tides of Brest" || got.Agent != "codex" || got.CWD != "/home/ada/tide" || !got.Parent.EventID.IsZero() || got.Parent.SessionID != "" {
		t.Errorf("session is %+v", got)
	}
	importtest.Same(t, "source", event.SessionSource{Format: "codex", Version: "0.118.0", Path: fixture("whole"), SessionID: id("1")}, got.Source)
	got = sessionInfo(t, log, id("5"))
	if got.Parent.SessionID != id("4") || got.Parent.CallID != "s1" || got.Parent.Seq != 11 || got.Labels["agent_role"] != "explorer" {
		t.Errorf("sub-agent is %+v", got)
	}
}

func TestUsage(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole")
	importtest.Same(t, "usage", event.Usage{InputTokens: 2100, CacheReadTokens: 3600, OutputTokens: 200, ReasoningTokens: 30}, usage(t, log, id("1")))
}

// usage returns the tokens of a session without its children.
func usage(t *testing.T, log *eventlog.Log, session string) event.Usage {
	t.Helper()
	view, err := projection.Load(t.Context(), log, session, projection.Usage())
	if err != nil {
		t.Fatal(err)
	}
	return view.State.Total.Usage
}

func TestOlderFiles(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "bare")
	importtest.Same(t, "active path", []string{
		"session_started Where is the anchor?", "user Where is the anchor?", "assistant calls shell", "tool result of shell", "assistant On the deck.",
	}, outline(t, log, id("8")))
}
