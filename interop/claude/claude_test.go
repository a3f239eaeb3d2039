package claude_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
)

const (
	transcripts = "../../testdata/transcripts"
	coding      = "3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67"
	branched    = "8b21f4d0-6c37-4e15-9a02-d7f3b8c61e94"
	compacted   = "c4d9072e-15ab-4f60-8e7d-2b9a6c3f0d18"
	picture     = "e7aa35c8-40f2-4d9b-b6e1-93c07f5a8d21"
	kiln        = "11111111-aaaa-4aaa-8aaa-00000000000"
)

// load imports files and folders without an error.
func load(t *testing.T, log *eventlog.Log, paths ...string) interop.Result {
	t.Helper()
	return importtest.Files(t, log, claude.Format{}, paths...)
}

// loadText imports text as a file with the name.
func loadText(t *testing.T, log *eventlog.Log, name, content string) (interop.Result, error) {
	t.Helper()
	return claude.Format{}.Import(t.Context(), log, importtest.Source(name, content))
}

func sample(project, session string) string {
	return filepath.Join(transcripts, "samples", project, session+".jsonl")
}

func fixture(name string) string { return filepath.Join(transcripts, "claude", name) }

func TestSamplesImportOnce(t *testing.T) {
	log := importtest.NewLog(t)
	dir := filepath.Join(transcripts, "samples")
	first := load(t, log, dir)
	if first.Records != 58 || first.Imported+first.Raw != 58 || len(first.Rejected) > 0 || first.Skipped > 0 {
		t.Errorf("first import: %+v", first)
	}
	second := load(t, log, dir)
	if second.Events != 0 || second.Present != 58 {
		t.Errorf("second import: %+v", second)
	}
	importtest.Same(t, "sessions", []string{coding, coding + ".agent-b7d21e0", branched, compacted, picture}, importtest.Sessions(t, log))
}

func TestCopyOfAFileAddsNothing(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-birdlog", coding))
	again, err := loadText(t, log, "/elsewhere/copy.jsonl", importtest.ReadFile(t, sample("-home-ada-birdlog", coding)))
	if err != nil || again.Events != 0 || again.Present != again.Records {
		t.Errorf("import from another path: %+v, %v", again, err)
	}
}

func TestCodingSession(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, filepath.Join(transcripts, "samples", "-home-ada-birdlog"))
	all := importtest.Events(t, log, coding)
	importtest.Same(t, "events", []string{
		"session_started", "claude:mode", "claude:permission-mode", "claude:attachment", "claude:file-history-snapshot",
		"user TestParseSightings…", "assistant reasoning", "assistant calls Read", "assistant calls Bash", "claude:progress",
		"tool result of Read", "tool result of Bash", "assistant `fields`…", "assistant calls Edit", "tool result of Edit",
		"assistant calls Agent", "child_requested", "tool result of Agent", "child_started", "child_completed", "assistant calls Bash", "tool result of Bash", "assistant Fixed:…",
		"claude:system:stop_hook_summary", "claude:system:turn_duration", "session_updated", "claude:last-prompt",
	}, importtest.Outlines(t, all))
	start, _, err := event.Decode[event.Session](&all[0])
	if err != nil || start.Agent != "claude-code" || start.CWD != "/home/ada/birdlog" ||
		start.Source.Format != "claude" || start.Source.SessionID != coding || start.Source.Version != "2.1.63" {
		t.Errorf("session_started is %+v, %v", start, err)
	}
	if update, _, err := event.Decode[event.Session](&all[25]); err != nil || update.Title != "Commas in place names" {
		t.Errorf("session_updated is %+v, %v", update, err)
	}
	if !all[1].Timestamp.Equal(all[3].Timestamp) || all[0].ID.Time() == 0 {
		t.Errorf("records without a time got %v, the next has %v", all[1].Timestamp, all[3].Timestamp)
	}
}

func TestSubAgentKnowsItsCall(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, filepath.Join(transcripts, "samples", "-home-ada-birdlog"))
	all := importtest.Events(t, log, coding+".agent-b7d21e0")
	importtest.Same(t, "events", []string{"session_started", "user List…", "assistant calls Grep", "tool result of Grep", "assistant Two…"}, importtest.Outlines(t, all))
	start, _, err := event.Decode[event.Session](&all[0])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "parent", event.SessionParent{SessionID: coding, Seq: 16, CallID: "toolu_3f0c6a04"}, start.Parent)
}

func TestMessageHasAllMembers(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-birdlog", coding))
	all := importtest.Events(t, log, coding)
	m, _, err := event.Decode[event.Message](&all[7])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "message", event.Message{
		Role: event.Assistant, Provider: "anthropic", Model: "claude-sonnet-4-5", ResponseID: "msg_3f0c6a52001",
		Group: "msg_3f0c6a52001", StopReason: "tool_use",
		Usage: event.Usage{
			InputTokens: 6, OutputTokens: 80, CacheReadTokens: 14550, CacheWriteTokens: 331, Extra: []byte(`{"service_tier":"standard"}`),
		},
		Parts: []event.Part{{
			Type: event.ToolCallPart, CallID: "toolu_3f0c6a01", Name: "Read",
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
	result, _, err := event.Decode[event.Message](&all[11])
	if err != nil || !result.Parts[0].IsError || !strings.Contains(string(result.Extra), `"toolUseResult":"Error: Exit code 1"`) {
		t.Errorf("result is %+v, %v", result, err)
	}
}

func TestOrigin(t *testing.T) {
	log := importtest.NewLog(t)
	file := sample("-home-ada-birdlog", coding)
	load(t, log, file)
	content := importtest.ReadFile(t, file)
	for _, e := range importtest.Events(t, log, coding)[1:] {
		value, ok := e.MetadataValue(records.OriginKey)
		var o records.Origin
		if !ok || json.Unmarshal(value, &o) != nil {
			t.Fatalf("event %d has no origin: %s", e.Seq, e.Metadata)
		}
		_, child, _ := event.Decode[event.Child](&e)
		if child != (o.Part > 0) {
			t.Errorf("event %d: %s is part %d of its record", e.Seq, e.Type, o.Part)
		}
		if record := content[o.Offset : o.Offset+o.Bytes]; !child && event.DigestOf([]byte(record)) != o.Digest || o.Source != filepath.Clean(file) {
			t.Errorf("event %d: origin %+v, want the origin of %.40s…", e.Seq, o, record)
		}
		if child && (o.Bytes > 0 || o.Digest != "") {
			t.Errorf("event %d holds a part of its record, and has the digest of all of it: %+v", e.Seq, o)
		}
	}
}

func TestBranches(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-birdlog", branched))
	importtest.Same(t, "events", []string{
		"session_started", "user Where…", "assistant Both…",
		"user Twice…", "assistant calls Write", "tool result of Write", "assistant species.go…",
		"head_moved to 3", "user On…", "assistant calls Write", "tool result of Write", "assistant species.txt…", "session_updated",
	}, importtest.Outlines(t, importtest.Events(t, log, branched)))
	importtest.Same(t, "active path", []string{
		"session_started", "user Where…", "assistant Both…",
		"head_moved to 3", "user On…", "assistant calls Write", "tool result of Write", "assistant species.txt…", "session_updated",
	}, importtest.Outline(t, log, branched))
}

func TestCompactions(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-tidepool", compacted))
	all := importtest.Events(t, log, compacted)
	clearing, _, err := event.Decode[event.Compaction](&all[10])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "microcompaction", event.Compaction{
		Strategy: "clear_results", Trigger: "auto", Cleared: []string{"toolu_c4d90702"}, TokensBefore: 61200, TokensAfter: 53100, Extra: clearing.Extra,
	}, clearing)
	compaction, _, err := event.Decode[event.Compaction](&all[12])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "compaction", event.Compaction{
		Strategy: "summary", Trigger: "manual", Covers: event.Stretch{From: 1, To: 12}, TokensBefore: 53100,
		Summary: compaction.Summary, Extra: compaction.Extra,
	}, compaction)
	if !strings.HasPrefix(compaction.Summary, "This session is being continued") || strings.Contains(string(compaction.Extra), "being continued") ||
		!strings.Contains(string(compaction.Extra), `"isCompactSummary":true`) {
		t.Errorf("summary is %q, extra %s", compaction.Summary, compaction.Extra)
	}
	if all[11].Type != "claude:system:compact_boundary" {
		t.Errorf("the boundary became %s", all[11].Type)
	}
	importtest.Same(t, "length of the active path", len(all), len(importtest.Outline(t, log, compacted)))
}

func TestImagesBecomeBlobs(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-tidepool", picture))
	m, _, err := event.Decode[event.Message](&importtest.Events(t, log, picture)[1])
	if err != nil {
		t.Fatal(err)
	}
	image := m.Parts[1]
	if image.Type != event.ImagePart || image.MediaType != "image/png" || len(image.Data) > 0 || image.Blob.IsZero() {
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
	log := importtest.NewLog(t)
	load(t, log, fixture("sidechains.jsonl"))
	ids := importtest.Sessions(t, log)
	if len(ids) != 5 || ids[0] != kiln+"3" || ids[4] != kiln+"4" {
		t.Fatalf("sessions are %v", ids)
	}
	importtest.Same(t, "main session", []string{
		"session_started", "claude:summary", "user Count…", "assistant calls Task", "child_requested", "assistant calls Task",
		"child_requested", "child_started", "child_started", "tool result of Task", "child_completed", "tool result of Task", "child_completed",
		"assistant calls Task", "child_requested", "child_started", "tool result of Task", "child_completed", "assistant 14…",
	}, importtest.Outlines(t, importtest.Events(t, log, ids[0])))
	importtest.Same(t, "second session", []string{"session_started", "user A…", "assistant So…"}, importtest.Outlines(t, importtest.Events(t, log, ids[4])))
	answers := map[string]string{}
	for _, id := range ids[1:4] {
		all := importtest.Events(t, log, id)
		start, _, err := event.Decode[event.Session](&all[0])
		if err != nil || start.Parent.SessionID != ids[0] {
			t.Fatalf("session_started of %s is %+v, %v", id, start, err)
		}
		answers[start.Parent.CallID] = strings.Join(importtest.Outlines(t, all[1:]), ", ")
	}
	importtest.Same(t, "sub-agents by call", map[string]string{
		"toolu_11111101": "user Count…, assistant 14…", "toolu_11111102": "user Count…, assistant 9…",
		"toolu_11111103": "user Count…, assistant still…",
	}, answers)
}

func TestBrokenFile(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, fixture("broken.jsonl"))
	got := load(t, log, fixture("broken.jsonl"))
	if got.Records != 6 || got.Imported != 4 || got.Raw != 1 || len(got.Rejected) != 1 {
		t.Errorf("import: %+v", got)
	}
	if r := got.Rejected[0]; r.Line != 5 || int(r.Offset) != strings.LastIndexByte(content, '\n')+1 || !strings.Contains(r.Reason, "cut off after 150 bytes") {
		t.Errorf("refused: %+v", r)
	}
	importtest.Same(t, "events", []string{
		"session_started", "claude:file-history-snapshot", "user How…", "assistant 1240…", "user And…", "assistant The…",
	}, importtest.Outlines(t, importtest.Events(t, log, kiln+"1")))
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, claude.Format{}, "f.jsonl", map[string]bool{
		// a prompt
		`{"parentUuid":null,"sessionId":"s","type":"user"}` + "\n": true,
		// a line that is cut
		`{"parentUuid":null,"sessionId":"s","type":"user","message":{"content":"and`: true,
		// a summary
		`{"type":"summary","summary":"x","leafUuid":"u"}` + "\n": true,
		// a byte order mark
		"\ufeff" + `{"type":"mode","sessionId":"s"}`: true,
		// the second line
		"\n{\"cut\n" + `{"type":"mode","sessionId":"s"}`: true,
		// pi
		`{"type":"session","version":3,"id":"x","cwd":"/"}` + "\n" + `{"type":"message","id":"a","parentId":null}`: false,
		// codex
		`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x"}}`: false,
		// a log of convlog
		`{"crc":"00000000","v":1,"seq":1,"session_id":"s","type":"message_added"}`: false,
		// text
		"sessionId type user": false,
		// nothing
		"": false,
	})
}
