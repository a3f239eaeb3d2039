package entire_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/entire"
	"github.com/convlog/convlog/interop/internal/importtest"
)

const transcripts = "../../testdata/transcripts/entire"

var (
	plain  = filepath.Join(transcripts, "plain.jsonl")
	kinds  = filepath.Join(transcripts, "kinds.jsonl")
	format = entire.Format{}
)

// load imports a transcript twice. It returns the log and its only session.
func load(t *testing.T, content string) (*eventlog.Log, string) {
	t.Helper()
	log := importtest.NewLog(t)
	importtest.Load(t, log, format, "transcript.jsonl", content)
	importtest.Again(t, log, format, "transcript.jsonl", content)
	return log, only(t, log)
}

func only(t *testing.T, log *eventlog.Log) string {
	t.Helper()
	ids := importtest.Sessions(t, log)
	if len(ids) != 1 {
		t.Fatalf("sessions %q", ids)
	}
	return ids[0]
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "transcript.jsonl", map[string]bool{
		`{"v":1,"agent":"codex","cli_version":"0.8.42","type":"user","ts":"2026-`: true,
		`{"v":1,"type":"user","agent":"","content":null}` + "\n":                  true,
		"\xef\xbb\xbf\n" + `{"v":1,"type":"note","cli_version":"1"}`:              true,
		`{"v":1,"agent":"codex","cli_version":"0.8.42","typ`:                      false,
		`{"v":2,"agent":"codex","cli_version":"0.8.42","type":"user"}`:            false,
		`{"v":"1","agent":"codex","cli_version":"0.8.42","type":"user"}`:          false,
		`{"v":1,"seq":1,"id":"e","session_id":"s","type":"message_added"}`:        false,
		`{"type":"user","version":"2.0","message":{"role":"user"}}`:               false,
		`[{"v":1,"agent":"codex","cli_version":"0.8.42","type":"user"}]`:          false,
		`{"role":"user","content":"Hi"}`:                                          false,
		"":                                                                        false,
	})
}

func TestPlainTranscript(t *testing.T) {
	log, id := load(t, importtest.ReadFile(t, plain))
	importtest.Same(t, "log", []string{
		"session_started", "user When…", "assistant I…", `assistant calls exec_command {"cmd":"cat pier.txt"}`,
		"tool result of exec_command: low 11:40\nhigh 17:55\n", `assistant calls exec_command {"cmd":"cat quay.txt"}`,
		"tool failed result of exec_command: cat: quay.txt: no such file", "assistant Low…", "user Note…",
		`assistant calls apply_patch {"input":"*** Begin Patch\n*** Add File: notes.md\n+low water 11:40\n*** End Patch"}`,
		"tool result of apply_patch: ", "assistant It…",
	}, importtest.Path(t, log, id))
	start, all := importtest.Start(t, log, id), importtest.Messages(t, log, id)
	if start.Agent != "codex" || start.Source.Format != "entire" || start.Source.Version != "1" || string(start.Extra) != `{"cli_version":"0.9.1"}` || start.Title != "When is low water at the pier?" {
		t.Errorf("the session starts with %+v", start)
	}
	if !strings.HasPrefix(id, "codex-2026-05-04T06-00-00.000Z-") {
		t.Errorf("the session id is %s", id)
	}
	if all[1].Group == "" || all[1].Group != all[2].Group || all[1].Group != all[4].Group || all[6].Group == all[1].Group || all[1].Extra != nil {
		t.Errorf("the pieces of the answer are %+v, %+v and %+v", all[1], all[2], all[4])
	}
	if entries := importtest.History(t, log, id); len(entries) != 9 {
		t.Errorf("%d entries of the history", len(entries))
	}
}

// The file has every kind of block and line, with token counts and without a time.
func TestKinds(t *testing.T) {
	log, id := load(t, importtest.ReadFile(t, kinds))
	importtest.Same(t, "log", []string{
		"session_started", "user Which… image opaque", "assistant I…", `assistant calls Grep {"pattern":"gull"}`, "tool result of Grep: 3 lines",
		`assistant calls Read {"file_path":"guide.md"}`, "tool result of Read: Herring gull: pink legs.", "assistant opaque", "assistant A…",
		"entire:checkpoint", "user And…", `assistant calls Look {"at":"sea"}`, "tool result of Look: fog", "step_completed 0+2 0", "assistant I…",
	}, importtest.Path(t, log, id))
	all, events := importtest.Messages(t, log, id), importtest.Events(t, log, id)
	if all[0].Parts[0].ID != "prompt_1" || all[0].Parts[1].Blob.Bytes != 70 || all[1].Group != "msg_1" || all[1].Usage.InputTokens != 120 || all[1].Usage.OutputTokens != 30 || !all[2].Usage.IsZero() {
		t.Errorf("the question is %+v, the answer %+v and %+v", all[0], all[1], all[2])
	}
	if r := all[5].Parts[0]; string(r.Extra) != `{"file":{"filePath":"guide.md","numLines":12}}` || all[7].Text() != "A herring gull." {
		t.Errorf("the result is %+v, the answer %+v", r, all[7])
	}
	if string(all[8].Extra) != `{"ts":"","seen":true}` || all[9].Parts[0].CallID == "" || all[9].Parts[0].CallID != all[10].Parts[0].CallID {
		t.Errorf("the question is %+v, the call %+v and its result %+v", all[8], all[9], all[10])
	}
	if at := events[10].Timestamp; !at.Equal(events[9].Timestamp) || at.Second() != 8 {
		t.Errorf("the event without a time has time %v", at)
	}
}

// Each line that is not a message is stored raw, and only once.
func TestLinesWithoutMessage(t *testing.T) {
	text := strings.Join([]string{
		`{"v":1,"agent":"codex","type":"user","content":[{"text":"Hi"}]}`, `{"v":2,"type":"user","content":"Hi"}`, `{"v":1,"type":"user","content":7}`,
		`{"v":1,"content":"Hi","cli_version":"1","ts":"2026-05-04T06:00:00Z"}`, `{"v":1,"type":"assistant","content":null}`, `{"v":1,"type":"assistant","content":[],"id":"a"}`, `{"a":1}`, `{"v":1,"type":"user"}`,
	}, "\n")
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, format, "f.jsonl", text)
	importtest.Again(t, log, format, "f.jsonl", strings.Replace(text, `"1","ts":"2026`, `"2","ts":"2027`, 1))
	if got.Records != 8 || got.Raw != 7 {
		t.Errorf("import: %+v", got)
	}
}

// Invalid blocks stay in the message as opaque parts.
func TestInvalidBlocks(t *testing.T) {
	log, id := load(t, `{"v":1,"agent":"codex","type":"user","content":["Hi",7,{"text":7},{"type":"tool_use","id":"c","name":"read","result":{"output":"4"}},{"x":1}]}
{"v":1,"type":"assistant","content":["So.",7,{"type":"tool_use","id":"c"},{"type":"tool_result","tool_use_id":"c"},{"type":"thinking","thinking":"Hm"},{"type":"tool_use","id":"c","name":"read","result":"plain"},{"type":"tool_use","id":"d","name":"read","result":{"output":[1],"status":"late"}},{"type":"tool_use","id":"e","name":"read","result":null}]}`)
	importtest.Same(t, "log", []string{
		"session_started", "user Hi… opaque opaque opaque opaque", "assistant So.…", "assistant opaque", "assistant opaque", "assistant opaque",
		"assistant reasoning", "assistant calls read {}", "tool result of read: plain", "assistant calls read {}", "tool result of read: ", "assistant calls read {}",
	}, importtest.Path(t, log, id))
	all := importtest.Messages(t, log, id)
	if r := all[9].Parts[0]; string(r.Extra) != `{"status":"late"}` || string(r.Content[0].Value) != "[1]" || r.IsError {
		t.Errorf("the result is %+v", r)
	}
	if c := all[10].Parts[0]; string(c.Extra) != `{"result":null}` {
		t.Errorf("the call is %+v", c)
	}
}

// All transcripts of a session get one id, in any folder. The file name decides if the
// first line has no time, or if another file begins otherwise at the same time.
func TestSessionIDs(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, plain)
	importtest.Load(t, log, format, "a/0/transcript.jsonl", content)
	importtest.Again(t, log, format, "b/1/transcript.jsonl", content)
	importtest.Load(t, log, format, "c/transcript.jsonl", strings.Replace(content, "low water", "high water", 1))
	if ids := importtest.Sessions(t, log); len(ids) != 2 {
		t.Errorf("sessions %q", ids)
	}
	importtest.Load(t, log, format, "f/transcript.jsonl", `{"v":1,"agent":"codex","type":"assistant","ts":"2026-05-04T06:00:00.000Z","content":[7,{"type":"text","text":"Low."}]}`)
	importtest.Load(t, log, format, "c/transcript.jsonl", `{"v":1,"agent":"codex","type":"note","ts":"2026-05-04T06:00:00.001Z"}`)
	timeless := `{"v":1,"agent":"codex","type":"user","ts":"","content":[{"text":"Hi"}]}`
	importtest.Load(t, log, format, "d/transcript.jsonl", timeless)
	importtest.Load(t, log, format, "e/transcript.jsonl", timeless)
	ids := importtest.Sessions(t, log)
	if len(ids) != 6 || !strings.HasPrefix(ids[5], "transcript-") || len(format.Declare(importtest.Source("f", timeless)).Owns) > 0 {
		t.Errorf("sessions %q", ids)
	}
	if ids := format.Declare(importtest.Source("f", content)).Owns; len(ids) != 1 || ids[0] != "entire:codex 2026-05-04T06:00:00.000Z" {
		t.Errorf("the file owns %q", ids)
	}
}

func TestInvalidUnicode(t *testing.T) {
	importtest.Repairs(t, format, "f-887a0529", `{"v":1,"agent":"codex","type":"user","content":[{"text":"Cut: \ud83d"}]}`)
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "transcript.jsonl", plain, kinds) }
