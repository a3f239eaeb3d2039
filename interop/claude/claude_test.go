package claude_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/store/storetest"
)

const (
	transcripts = "../../testdata/transcripts"
	coding      = "3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67"
	branched    = "8b21f4d0-6c37-4e15-9a02-d7f3b8c61e94"
	compacted   = "c4d9072e-15ab-4f60-8e7d-2b9a6c3f0d18"
	picture     = "e7aa35c8-40f2-4d9b-b6e1-93c07f5a8d21"
	kiln        = "11111111-aaaa-4aaa-8aaa-00000000000"
)

func newLog(t *testing.T) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(storetest.NewMemory())
	t.Cleanup(func() { log.Close() })
	return log
}

// load imports files and folders, which must succeed.
func load(t *testing.T, log *eventlog.Log, paths ...string) interop.Result {
	t.Helper()
	table, err := interop.Import(t.Context(), log, []interop.Format{claude.Format{}}, paths, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table.Total()
}

// loadText imports lines as if they stood in a file of that name.
func loadText(t *testing.T, log *eventlog.Log, name, content string) (interop.Result, error) {
	t.Helper()
	return claude.Format{}.Import(t.Context(), log, source(name, content))
}

func source(name, content string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func sample(project, session string) string {
	return filepath.Join(transcripts, "samples", project, session+".jsonl")
}

func fixture(name string) string { return filepath.Join(transcripts, "claude", name) }

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func events(t *testing.T, log *eventlog.Log, session string) (all []eventlog.Event) {
	t.Helper()
	for e, err := range log.Read(t.Context(), session, eventlog.All) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func sessions(t *testing.T, log *eventlog.Log) (ids []string) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// draw is a short line for each event.
func draw(t *testing.T, all []eventlog.Event) (lines []string) {
	t.Helper()
	for i := range all {
		lines = append(lines, drawEvent(t, &all[i]))
	}
	return lines
}

func drawEvent(t *testing.T, e *eventlog.Event) string {
	t.Helper()
	if h, ok, err := e.HeadMove(); ok && err == nil {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	m, ok, err := e.Message()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return string(e.Type)
	}
	line := string(m.Role)
	for _, p := range m.Parts {
		line += " " + drawPart(&p)
	}
	return line
}

func drawPart(p *eventlog.Part) string {
	switch p.Type {
	case eventlog.TextPart:
		text, _, _ := strings.Cut(p.Text, " ")
		return text + "…"
	case eventlog.ToolCallPart:
		return "calls " + p.Name
	case eventlog.ToolResultPart:
		return "result of " + p.Name
	}
	return string(p.Type)
}

// path is what is drawn of the active path.
func path(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for e, err := range log.ActivePath(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, drawEvent(t, &e))
	}
	return lines
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSamplesImportOnce(t *testing.T) {
	log := newLog(t)
	dir := filepath.Join(transcripts, "samples")
	first := load(t, log, dir)
	if first.Records != 58 || first.Imported+first.Raw != 58 || len(first.Refused) > 0 || first.Held > 0 {
		t.Errorf("first import: %+v", first)
	}
	second := load(t, log, dir)
	if second.Events != 0 || second.Present != 58 {
		t.Errorf("second import: %+v", second)
	}
	same(t, "sessions", []string{coding, coding + ".agent-b7d21e0", branched, compacted, picture}, sessions(t, log))
	for _, id := range sessions(t, log) {
		report, err := log.Verify(t.Context(), id)
		if err != nil || len(report.Defects) > 0 {
			t.Errorf("verify %s: %v, %v", id, report.Defects, err)
		}
	}
}

func TestSamePathElsewhereAddsNothing(t *testing.T) {
	log := newLog(t)
	load(t, log, sample("-home-ada-birdlog", coding))
	again, err := loadText(t, log, "/elsewhere/copy.jsonl", readFile(t, sample("-home-ada-birdlog", coding)))
	if err != nil || again.Events != 0 || again.Present != again.Records {
		t.Errorf("import from another path: %+v, %v", again, err)
	}
}

func TestCodingSession(t *testing.T) {
	log := newLog(t)
	load(t, log, filepath.Join(transcripts, "samples", "-home-ada-birdlog"))
	all := events(t, log, coding)
	same(t, "events", []string{
		"session_started", "claude:mode", "claude:permission-mode", "claude:attachment", "claude:file-history-snapshot",
		"user TestParseSightings…", "assistant reasoning", "assistant calls Read", "assistant calls Bash", "claude:progress",
		"tool result of Read", "tool result of Bash", "assistant `fields`…", "assistant calls Edit", "tool result of Edit",
		"assistant calls Agent", "child_requested", "tool result of Agent", "child_started", "child_completed", "assistant calls Bash", "tool result of Bash", "assistant Fixed:…",
		"claude:system:stop_hook_summary", "claude:system:turn_duration", "session_updated", "claude:last-prompt",
	}, draw(t, all))
	start, _, err := all[0].Session()
	if err != nil || start.Agent != "claude-code" || start.CWD != "/home/ada/birdlog" ||
		start.Source.Format != "claude" || start.Source.SessionID != coding || start.Source.Version != "2.1.63" {
		t.Errorf("session_started is %+v, %v", start, err)
	}
	if update, _, err := all[25].Session(); err != nil || update.Title != "Commas in place names" {
		t.Errorf("session_updated is %+v, %v", update, err)
	}
	if !all[1].Timestamp.Equal(all[3].Timestamp) || all[0].ID.Time() == 0 {
		t.Errorf("records without a time got %v, the next has %v", all[1].Timestamp, all[3].Timestamp)
	}
}

func TestSubAgentKnowsItsCall(t *testing.T) {
	log := newLog(t)
	load(t, log, filepath.Join(transcripts, "samples", "-home-ada-birdlog"))
	all := events(t, log, coding+".agent-b7d21e0")
	same(t, "events", []string{"session_started", "user List…", "assistant calls Grep", "tool result of Grep", "assistant Two…"}, draw(t, all))
	start, _, err := all[0].Session()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "parent", eventlog.SessionParent{SessionID: coding, Seq: 16, CallID: "toolu_3f0c6a04"}, start.Parent)
}

func TestMessageKeepsEverything(t *testing.T) {
	log := newLog(t)
	load(t, log, sample("-home-ada-birdlog", coding))
	all := events(t, log, coding)
	m, _, err := all[7].Message()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "message", eventlog.Message{
		Role: eventlog.Assistant, Provider: "anthropic", Model: "claude-sonnet-4-5", ResponseID: "msg_3f0c6a52001",
		Group: "msg_3f0c6a52001", StopReason: "tool_use",
		Usage: eventlog.Usage{
			InputTokens: 6, OutputTokens: 80, CacheReadTokens: 14550, CacheWriteTokens: 331, Extra: []byte(`{"service_tier":"standard"}`),
		},
		Parts: []eventlog.Part{{
			Type: eventlog.ToolCallPart, CallID: "toolu_3f0c6a01", Name: "Read",
			Arguments: []byte(`{"file_path":"/home/ada/birdlog/parse.go"}`), Extra: []byte(`{"caller":{"type":"direct"}}`),
		}},
		Extra: m.Extra,
	}, m)
	extra := string(m.Extra)
	for _, want := range []string{
		`{"parentUuid":"`, `"isSidechain":false,"userType":"external","cwd":"/home/ada/birdlog","sessionId":"`,
		`"type":"assistant","message":{"type":"message","stop_sequence":null},"requestId":"req_`, `"uuid":"`, `"timestamp":"2026-03-02T08:14:4`,
	} {
		if !strings.Contains(extra, want) {
			t.Errorf("extra lacks %s: %s", want, extra)
		}
	}
	result, _, err := all[11].Message()
	if err != nil || !result.Parts[0].IsError || !strings.Contains(string(result.Extra), `"toolUseResult":"Error: Exit code 1"`) {
		t.Errorf("result is %+v, %v", result, err)
	}
}

func TestOrigin(t *testing.T) {
	log := newLog(t)
	file := sample("-home-ada-birdlog", coding)
	load(t, log, file)
	content := readFile(t, file)
	for _, e := range events(t, log, coding)[1:] {
		value, ok := e.MetadataValue(interop.OriginKey)
		var o interop.Origin
		if !ok || json.Unmarshal(value, &o) != nil {
			t.Fatalf("event %d has no origin: %s", e.Seq, e.Metadata)
		}
		if record := content[o.Offset : o.Offset+o.Bytes]; eventlog.DigestOf([]byte(record)) != o.Digest || o.Source != filepath.Clean(file) {
			t.Errorf("event %d: origin %+v is not that of %.40s…", e.Seq, o, record)
		}
		if _, child, _ := e.Child(); child != (o.Part > 0) {
			t.Errorf("event %d: %s is part %d of its record", e.Seq, e.Type, o.Part)
		}
	}
}

func TestBranches(t *testing.T) {
	log := newLog(t)
	load(t, log, sample("-home-ada-birdlog", branched))
	same(t, "events", []string{
		"session_started", "user Where…", "assistant Both…",
		"user Twice…", "assistant calls Write", "tool result of Write", "assistant species.go…",
		"head_moved to 3", "user On…", "assistant calls Write", "tool result of Write", "assistant species.txt…", "session_updated",
	}, draw(t, events(t, log, branched)))
	same(t, "active path", []string{
		"session_started", "user Where…", "assistant Both…",
		"head_moved to 3", "user On…", "assistant calls Write", "tool result of Write", "assistant species.txt…", "session_updated",
	}, path(t, log, branched))
}

func TestCompactions(t *testing.T) {
	log := newLog(t)
	load(t, log, sample("-home-ada-tidepool", compacted))
	all := events(t, log, compacted)
	clearing, _, err := all[10].Compaction()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "microcompaction", eventlog.Compaction{
		Strategy: "clear_results", Trigger: "auto", Cleared: []string{"toolu_c4d90702"}, TokensBefore: 61200, TokensAfter: 53100, Extra: clearing.Extra,
	}, clearing)
	compaction, _, err := all[12].Compaction()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "compaction", eventlog.Compaction{
		Strategy: "summary", Trigger: "manual", Covers: eventlog.Covers{From: 1, To: 12}, TokensBefore: 53100,
		Summary: compaction.Summary, Extra: compaction.Extra,
	}, compaction)
	if !strings.HasPrefix(compaction.Summary, "This session is being continued") || strings.Contains(string(compaction.Extra), "being continued") ||
		!strings.Contains(string(compaction.Extra), `"isCompactSummary":true`) {
		t.Errorf("summary is %q, extra %s", compaction.Summary, compaction.Extra)
	}
	if all[11].Type != "claude:system:compact_boundary" {
		t.Errorf("the boundary became %s", all[11].Type)
	}
	same(t, "length of the active path", len(all), len(path(t, log, compacted)))
}

func TestImagesBecomeBlobs(t *testing.T) {
	log := newLog(t)
	load(t, log, sample("-home-ada-tidepool", picture))
	m, _, err := events(t, log, picture)[1].Message()
	if err != nil {
		t.Fatal(err)
	}
	image := m.Parts[1]
	if image.Type != eventlog.ImagePart || image.MediaType != "image/png" || len(image.Data) > 0 || image.Blob.IsZero() {
		t.Fatalf("image is %+v", image)
	}
	body, err := log.OpenBlob(t.Context(), image.Blob.Blob)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	head := make([]byte, 8)
	if _, err := body.Read(head); err != nil || string(head) != "\x89PNG\r\n\x1a\n" {
		t.Errorf("blob begins %q, %v", head, err)
	}
}

func TestSidechainsInline(t *testing.T) {
	log := newLog(t)
	load(t, log, fixture("sidechains.jsonl"))
	ids := sessions(t, log)
	if len(ids) != 5 || ids[0] != kiln+"3" || ids[4] != kiln+"4" {
		t.Fatalf("sessions are %v", ids)
	}
	same(t, "main session", []string{
		"session_started", "session_updated", "user Count…", "assistant calls Task", "child_requested", "assistant calls Task",
		"child_requested", "child_started", "child_started", "tool result of Task", "child_completed", "tool result of Task", "child_completed",
		"assistant calls Task", "child_requested", "child_started", "tool result of Task", "child_completed", "assistant 14…",
	}, draw(t, events(t, log, ids[0])))
	same(t, "second session", []string{"session_started", "user A…", "assistant So…"}, draw(t, events(t, log, ids[4])))
	answers := map[string]string{}
	for _, id := range ids[1:4] {
		all := events(t, log, id)
		start, _, err := all[0].Session()
		if err != nil || start.Parent.SessionID != ids[0] {
			t.Fatalf("session_started of %s is %+v, %v", id, start, err)
		}
		answers[start.Parent.CallID] = strings.Join(draw(t, all[1:]), ", ")
	}
	same(t, "sub-agents by call", map[string]string{
		"toolu_11111101": "user Count…, assistant 14…", "toolu_11111102": "user Count…, assistant 9…",
		"toolu_11111103": "user Count…, assistant still…",
	}, answers)
}

func TestBrokenFile(t *testing.T) {
	log := newLog(t)
	content := readFile(t, fixture("broken.jsonl"))
	got := load(t, log, fixture("broken.jsonl"))
	if got.Records != 6 || got.Imported != 4 || got.Raw != 1 || len(got.Refused) != 1 {
		t.Errorf("import: %+v", got)
	}
	if r := got.Refused[0]; r.Line != 5 || int(r.Offset) != strings.LastIndexByte(content, '\n')+1 || !strings.Contains(r.Reason, "cut off after 150 bytes") {
		t.Errorf("refused: %+v", r)
	}
	same(t, "events", []string{
		"session_started", "claude:file-history-snapshot", "user How…", "assistant 1240…", "user And…", "assistant The…",
	}, draw(t, events(t, log, kiln+"1")))
}

func TestDetect(t *testing.T) {
	for _, test := range []struct {
		name, head string
		want       bool
	}{
		{"a prompt", `{"parentUuid":null,"sessionId":"s","type":"user"}` + "\n", true},
		{"a line that is cut", `{"parentUuid":null,"sessionId":"s","type":"user","message":{"content":"and`, true},
		{"a summary", `{"type":"summary","summary":"x","leafUuid":"u"}` + "\n", true},
		{"a byte order mark", "\ufeff" + `{"type":"mode","sessionId":"s"}`, true},
		{"the second line", "\n{\"cut\n" + `{"type":"mode","sessionId":"s"}`, true},
		{"pi", `{"type":"session","version":3,"id":"x","cwd":"/"}` + "\n" + `{"type":"message","id":"a","parentId":null}`, false},
		{"codex", `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x"}}`, false},
		{"a log of ours", `{"crc":"00000000","v":1,"seq":1,"session_id":"s","type":"message_added"}`, false},
		{"text", "sessionId type user", false},
		{"nothing", "", false},
	} {
		if got := (claude.Format{}).Detect("f.jsonl", []byte(test.head)); got != test.want {
			t.Errorf("%s: Detect is %v", test.name, got)
		}
	}
}
