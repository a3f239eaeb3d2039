package gemini_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
)

const (
	transcripts = "../../testdata/transcripts/gemini"
	tides       = "5b0c1a7e-0000-4000-8000-0000000000d1"
	logbook     = "5b0c1a7e-0000-4000-8000-0000000000d2"
)

var (
	tidesFile   = filepath.Join(transcripts, "chats", "session-2026-04-02T08-00-5b0c1a7e.json")
	logbookFile = filepath.Join(transcripts, "chats", "session-2026-04-02T08-00-5b0c1a7f.jsonl")
)

// load imports files and folders without an error.
func load(t *testing.T, log *eventlog.Log, paths ...string) interop.Result {
	t.Helper()
	return importtest.Files(t, log, gemini.Format{}, paths...)
}

// loadText imports text as a file.
func loadText(t *testing.T, log *eventlog.Log, content string) (interop.Result, error) {
	t.Helper()
	return gemini.Format{}.Import(t.Context(), log, importtest.Source("f", content))
}

// importMessages imports a document with messages, without an error or a rejected
// record.
func importMessages(t *testing.T, log *eventlog.Log, messages ...string) interop.Result {
	t.Helper()
	got, err := loadText(t, log, document(messages...))
	if err != nil || len(got.Rejected) > 0 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	return got
}

func document(messages ...string) string {
	return `{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00Z","lastUpdated":"2026-01-01T00:00:00Z","messages":[` +
		strings.Join(messages, ",\n") + `]}`
}

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-01-01T00:00:01Z","type":"user","content":%q}`, id, text)
}

func answer(id, members string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-01-01T00:00:02Z","type":"gemini",%s,"model":"g"}`, id, members)
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, gemini.Format{}, "f.json", map[string]bool{
		"{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"messages\": [\n    {\"id\": \"m": true,
		"\ufeff{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n{\"id\":\"m\"}":                          true,
		`{"sessionId":"s","messages":[]}`:                                                            false,
		`{"sessionId":"s","type":"user","uuid":"u"}`:                                                 false,
		`{"sessionId":"","projectHash":"p"}`:                                                         false,
		`{"sessionId":"s","projectHash":7}`:                                                          false,
		`[{"sessionId":"s","projectHash":"p"}]`:                                                      false,
		`{"messages":[{"role":"user","content":"Hello"}]}`:                                           false,
		"tides": false,
		"":      false,
	})
}

func TestADocument(t *testing.T) {
	log := importtest.NewLog(t)
	if got := load(t, log, tidesFile); got.Records != 7 || got.Imported != 6 || got.Raw != 1 || got.Events != 11 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "user When…", "gemini:info", "assistant reasoning", "assistant calls read_file", "tool result of read_file",
		"assistant calls read_file", "tool result of read_file", "assistant At…", "user And… image", "assistant One…",
	}, importtest.Outline(t, log, tides))
	all := importtest.Events(t, log, tides)
	start, _, err := event.Decode[event.Session](&all[0])
	if err != nil || start.Title != "Tides at Pwllheli" || start.Source.Format != "gemini" || start.Agent != "gemini-cli" {
		t.Errorf("the session starts with %+v, %v", start, err)
	}
	m, _, err := event.Decode[event.Message](&all[3])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "message", event.Message{
		Role: event.Assistant, Provider: "google", Model: "gemini-2.5-flash", Group: "m3",
		Usage: event.Usage{InputTokens: 9000, OutputTokens: 100, ReasoningTokens: 60, Extra: []byte(`{"total":9100}`)},
		Parts: []event.Part{{Type: event.ReasoningPart, Text: "Reading\n\nThe file should tell.", Extra: []byte(`{"timestamp":"2026-04-02T08:00:04.000Z"}`)}},
		Extra: []byte(`{"id":"m3","timestamp":"2026-04-02T08:00:05.000Z","type":"gemini"}`),
	}, m)
	result, _, err := event.Decode[event.Message](&all[7])
	if err != nil || !result.Parts[0].IsError || result.Parts[0].Content[0].Text != "File not found." || result.Parts[0].CallID != "read-2" ||
		!strings.Contains(string(result.Parts[0].Extra), `"status":"error"`) {
		t.Errorf("the result is %+v, %v", result, err)
	}
	origin, _ := all[4].MetadataValue("origin")
	if !strings.Contains(string(origin), `"line":19,`) || !strings.Contains(string(origin), `"part":4}`) {
		t.Errorf("origin is %s", origin)
	}
}

func TestLines(t *testing.T) {
	log := importtest.NewLog(t)
	if got := load(t, log, logbookFile); got.Records != 15 || got.Raw != 6 || got.Events != 17 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "user Begin…", "gemini:$set", "assistant calls write_file", "tool result of write_file", "step_completed",
		"assistant The…", "gemini:$set", "head_moved to 8", "gemini:$rewindTo", "user Add…", "gemini:$set", "session_updated",
	}, importtest.Outline(t, log, logbook))
	step, _, err := event.Decode[event.StepCompletion](&importtest.Events(t, log, logbook)[5])
	if err != nil || step.ResponseID != "a2" || step.Usage.InputTokens != 500 || step.Usage.OutputTokens != 12 {
		t.Errorf("step is %+v, %v", step, err)
	}
}

func TestADocumentWithoutConversationIsHeld(t *testing.T) {
	log := importtest.NewLog(t)
	note := `{"id":"w","type":"warning","content":"No network."}`
	if got := importMessages(t, log, note); got.Skipped != 2 || got.Events != 0 || len(got.Sessions) != 0 || len(importtest.Sessions(t, log)) != 0 {
		t.Errorf("import: %+v", got)
	}
	importMessages(t, log, note, user("a", "Hello"))
	importtest.Same(t, "active path", []string{"session_started", "gemini:warning", "user Hello…"}, importtest.Outline(t, log, "s"))
}

func TestGrowingMessages(t *testing.T) {
	log := importtest.NewLog(t)
	call := `{"id":"c","name":"read","args":{"p":1},"status":"executing"}`
	done := `{"id":"c","name":"read","args":{"p":1},"status":"success","result":[{"functionResponse":{"id":"c","name":"read","response":{"output":"4"}}}]}`
	next := `{"id":"d","name":"list","args":{},"status":"cancelled","result":[{"functionResponse":{"id":"d","name":"list","response":{"error":"Cancelled."}}}]}`
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":[`+call+`]`))
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":[`+done+`]`))
	tokens := `"tokens":{"input":10,"output":2,"cached":4,"thoughts":1,"tool":3,"total":16}`
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":[`+done+`,`+next+`],`+tokens), answer("e", `"content":"Four"`))
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":[`+done+`,`+next+`],`+tokens), answer("e", `"content":"Four",`+tokens), user("f", "Thanks"))
	importtest.Same(t, "active path", []string{
		"session_started", "user Count…", "assistant Yes…", "assistant calls read", "tool result of read", "assistant calls list", "tool result of list",
		"assistant Four…", "step_completed", "user Thanks…",
	}, importtest.Outline(t, log, "s"))
	all := importtest.Events(t, log, "s")
	if m, _, err := event.Decode[event.Message](&all[5]); err != nil || m.Group != "b" || m.Usage.InputTokens != 9 || m.Usage.CacheReadTokens != 4 || m.Usage.OutputTokens != 3 {
		t.Errorf("the call that came with the tokens is %+v, %v", m, err)
	}
}

func TestChangedTokens(t *testing.T) {
	log := importtest.NewLog(t)
	header, _, _ := strings.Cut(document(), `,"messages"`)
	text := header + "}"
	for _, input := range []int{10, 20, 10} {
		text += "\n" + answer("b", fmt.Sprintf(`"content":"Two","tokens":{"input":%d}`, input))
	}
	for range 2 {
		if _, err := loadText(t, log, text); err != nil {
			t.Fatal(err)
		}
	}
	importtest.Same(t, "active path", []string{"session_started", "assistant Two…", "step_completed"}, importtest.Outline(t, log, "s"))
}

// The next line follows the tokens of a message, in a second import too.
func TestLineAfterChangedTokens(t *testing.T) {
	header, _, _ := strings.Cut(document(), `,"messages"`)
	text := header + "}\n" + answer("b", `"content":"Two","tokens":{"input":10}`) + "\n" + `{"$rewindTo":"b"}` + "\n" +
		answer("b", `"content":"Two","tokens":{"input":20}`) + "\n"
	importtest.Grows(t, gemini.Format{}, "f", text, text+`{"$set":{"summary":"Counting"}}`)
}

func TestChangedMessagesAreAddedRaw(t *testing.T) {
	log := importtest.NewLog(t)
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Four"`))
	for range 2 {
		importMessages(t, log, user("a", "Count"), answer("b", `"content":"(masked)"`), user("c", "Thanks"))
	}
	importtest.Same(t, "active path", []string{"session_started", "user Count…", "assistant Four…", "gemini:gemini", "user Thanks…"}, importtest.Outline(t, log, "s"))
}

func TestRewoundDocument(t *testing.T) {
	log := importtest.NewLog(t)
	a, b, c := user("a", "One"), answer("b", `"content":"Two"`), user("c", "Three")
	importMessages(t, log, a, b, c)
	if got := importMessages(t, log, a, b); got.Events != 0 {
		t.Errorf("a shorter version: %+v", got)
	}
	importMessages(t, log, a, b, user("d", "Four"))
	importtest.Same(t, "active path", []string{"session_started", "user One…", "assistant Two…", "head_moved to 3", "user Four…"}, importtest.Outline(t, log, "s"))
	importMessages(t, log, a, b, user("d", "Four"), answer("e", `"content":"Five"`))
	if lines := importtest.Outline(t, log, "s"); lines[len(lines)-1] != "assistant Five…" || strings.Count(strings.Join(lines, " "), "head_moved") != 1 {
		t.Errorf("active path is %v", lines)
	}
}

// Another message with the same token counts does not take the counts that came later.
func TestEqualTokensOfTwoMessages(t *testing.T) {
	counted := func(id string, input int) string {
		return answer(id, fmt.Sprintf(`"content":"Four","tokens":{"input":%d,"output":1}`, input))
	}
	text := strings.Join([]string{`{"sessionId":"s","projectHash":"p"}`, counted("a", 6), counted("b", 4), `{"$rewindTo":"b"}`, counted("b", 6), ""}, "\n")
	importtest.Grows(t, gemini.Format{}, "f", text, text+`{"$set":{"summary":"Counting"}}`)
}

func TestRewoundBranchGrows(t *testing.T) {
	log := importtest.NewLog(t)
	a, b := user("a", "One"), answer("b", `"content":"Two"`)
	importMessages(t, log, a, b)
	importMessages(t, log, a, user("c", "Three"))
	grown := answer("b", `"content":"Two","toolCalls":[{"id":"t","name":"read","args":{}}]`)
	importMessages(t, log, a, grown)
	importtest.Same(t, "active path", []string{"session_started", "user One…", "assistant Two…", "head_moved to 3", "assistant calls read"}, importtest.Outline(t, log, "s"))
}

func TestLateTitle(t *testing.T) {
	log := importtest.NewLog(t)
	importMessages(t, log, user("a", "One"))
	named := strings.Replace(document(user("a", "One")), `"messages"`, `"summary":"Counting","messages"`, 1)
	for _, events := range []int{1, 0} {
		if got, err := loadText(t, log, named); err != nil || got.Events != events {
			t.Errorf("import: %+v, %v", got, err)
		}
	}
	importtest.Same(t, "active path", []string{"session_started", "user One…", "session_updated"}, importtest.Outline(t, log, "s"))
}

func TestFromADocumentToLines(t *testing.T) {
	log := importtest.NewLog(t)
	a, b := user("a", "One"), answer("b", `"content":"Two"`)
	importMessages(t, log, a, b)
	header, _, _ := strings.Cut(document(), `,"messages"`)
	got, err := loadText(t, log, strings.Join([]string{header + "}", a, b, user("c", "Three")}, "\n"))
	if err != nil || got.Present != 3 || got.Events != 1 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

func TestTruncatedDocumentIsRejected(t *testing.T) {
	text := importtest.ReadFile(t, tidesFile)
	log := importtest.NewLog(t)
	got, err := loadText(t, log, text[:strings.Index(text, `"id": "m5"`)])
	if err != nil || len(got.Rejected) != 1 || got.Imported != 4 || got.Raw != 1 {
		t.Errorf("import: %+v, %v", got, err)
	}
	if got, err := loadText(t, log, text); err != nil || got.Present != 5 || got.Imported != 2 {
		t.Errorf("import of all: %+v, %v", got, err)
	}
}

func TestAnotherSessionOfTheSameIDIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	importMessages(t, log, user("a", "One"))
	if _, err := loadText(t, log, document(user("x", "Two"))); !errors.Is(err, interop.ErrHistory) {
		t.Errorf("error is %v", err)
	}
}

func TestSubagentsNameTheirParent(t *testing.T) {
	log := importtest.NewLog(t)
	_, err := gemini.Format{}.Import(t.Context(), log, importtest.Source("/x/chats/parent-id/s.jsonl",
		`{"sessionId":"s","projectHash":"p","kind":"subagent"}`+"\n"+user("a", "One")))
	if err != nil {
		t.Fatal(err)
	}
	if start, _, err := event.Decode[event.Session](&importtest.Events(t, log, "s")[0]); err != nil || start.Parent.SessionID != "parent-id" {
		t.Errorf("start is %+v, %v", start, err)
	}
}

func TestAnotherHistory(t *testing.T) {
	log := importtest.NewLog(t)
	header, _, _ := strings.Cut(document(), `,"messages"`)
	a, b := user("a", "One"), answer("b", `"content":"Two"`)
	text := strings.Join([]string{
		header + "}", a, b, `{"$set":{"messages":[` + user("x", "One was said.") + "," + b + `,{"id":"n","type":"info","content":"-"}]}}`, user("c", "Three"),
	}, "\n")
	for range 2 {
		if got, err := loadText(t, log, text); err != nil || got.Raw > 0 {
			t.Fatalf("import: %+v, %v", got, err)
		}
	}
	var said []string
	for _, e := range importtest.History(t, log, "s") {
		said = append(said, e.Message.Text())
	}
	importtest.Same(t, "history", []string{"One was said.", "Two", "Three"}, said)
	c, ok, err := event.Decode[event.Compaction](&importtest.Events(t, log, "s")[3])
	if err != nil || !ok || len(c.Entries) != 2 || c.Entries[1].Seq != 3 {
		t.Errorf("event 4 is %+v, %v", c, err)
	}
}

// The body of an erased image is not stored again.
func TestAnErasedImageStaysAway(t *testing.T) {
	log := importtest.NewLog(t)
	text := `{"sessionId":"s-1","projectHash":"p","startTime":"2026-04-02T08:00:00.000Z"}
{"id":"m1","timestamp":"2026-04-02T08:00:01.000Z","type":"user","content":[{"text":"Look."},{"inlineData":{"mimeType":"image/png","data":"aW1hZ2U="}}]}
`
	importtest.Load(t, log, gemini.Format{}, "f.jsonl", text)
	if n := importtest.Redact(t, log, func(e *event.Event) bool { return e.Type == event.MessageAdded }); n != 1 {
		t.Fatalf("%d events redacted", n)
	}
	before := importtest.Remains(t, log)
	if got := importtest.Text(t, log, gemini.Format{}, "f.jsonl", text); got.Withheld != 1 || got.Events != 0 {
		t.Errorf("import again: %+v", got)
	}
	importtest.Same(t, "log", before, importtest.Remains(t, log))
	if importtest.Says(before, "sha256") {
		t.Errorf("a digest remains: %+v", before)
	}
}
