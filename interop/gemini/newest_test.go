package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
)

const (
	headerLine  = `{"sessionId":"s","projectHash":"p","kind":"main"}`
	contextLine = `{"id":"c0","type":"user","content":[{"text":"<session_context>\nA folder.\n</session_context>"}]}`
	theCall     = `{"id":"f1","name":"run_shell_command","args":{"command":"ls"}}`
	theResponse = `{"functionResponse":{"id":"f1","name":"run_shell_command","response":{"output":"Output: a\nExit Code: 3\nProcess Group PGID: 7"}}}`
)

// set is a line that sets the messages of the conversation.
func set(messages ...string) string {
	return `{"$set":{"messages":[` + strings.Join(messages, ",") + `]}}`
}

// asked is a message of the user with content.
func asked(id, content string) string {
	return fmt.Sprintf(`{"id":%q,"type":"user","content":[%s]}`, id, content)
}

// resumed are the lines of a conversation with a call, and of its resume.
func resumed() []string {
	return []string{
		headerLine, set(contextLine), user("u1", "List."),
		answer("a1", `"content":"I look.","thoughts":[{"subject":"Looking","description":"a"}],"tokens":null`),
		answer("a1", `"content":"I look.","thoughts":[{"subject":"Looking","description":"a"}],"tokens":{"input":10,"output":2}`),
		answer("a1", `"content":"I look.","thoughts":[{"subject":"Looking","description":"a"}],"tokens":{"input":10,"output":2},"toolCalls":[`+
			strings.TrimSuffix(theCall, "}")+`,"status":"success","result":[`+theResponse+`]}]`),
		asked("u2", theResponse), answer("a2", `"content":"It has a.","tokens":{"input":12,"output":3}`),
		headerLine, set(contextLine), `{"$set":{"sessionId":"s"}}`,
		set(contextLine, asked("u1", `{"text":"List."}`),
			answer("a1", `"content":[{"text":"**Looking** a","thought":true},{"text":"I look."},{"functionCall":`+theCall+`}]`),
			asked("a1_response", theResponse), asked("u2", theResponse), answer("a2", `"content":[{"text":"It has a."}]`)),
		user("u3", "Thanks."), answer("a3", `"content":"Yes.","tokens":{"input":14,"output":1}`),
	}
}

func TestResumeRepeatsTheConversation(t *testing.T) {
	log := importtest.NewLog(t)
	lines := strings.Join(resumed(), "\n")
	importtest.Load(t, log, gemini.Format{}, "f.jsonl", lines)
	want := []string{
		"session_started", "user <session_context>\nA…", "user List.…", "assistant reasoning I…", "step_completed", "assistant calls run_shell_command",
		"tool result of run_shell_command", "assistant It…", "gemini:session", "gemini:$set", "user Thanks.…", "assistant Yes.…",
	}
	importtest.Same(t, "active path", want, importtest.Outline(t, log, "s"))
	all := importtest.Events(t, log, "s")
	if start, _, err := event.Decode[event.Session](&all[0]); err != nil || start.Title != "List." || !all[1].IsContext() {
		t.Errorf("the session starts with %+v, %v", start, err)
	}
	got, err := stats.Load(t.Context(), log, "s")
	if x := got.Total; err != nil || x.Turns != 2 || x.Responses != 3 || x.Unknown != 0 || x.Usage.InputTokens != 36 || x.Calls != 1 || got.ByTool["run_shell_command"].Failed != 1 {
		t.Errorf("stats: %+v, %v", got, err)
	}
}

func TestAnyResumeGrows(t *testing.T) {
	lines := resumed()
	for n := range lines {
		importtest.Grows(t, gemini.Format{}, "f.jsonl", strings.Join(lines[:n], "\n")+"\n", strings.Join(lines, "\n")+"\n")
	}
}

func TestAStubOfASessionAddsNothing(t *testing.T) {
	log := importtest.NewLog(t)
	stub := strings.Join([]string{headerLine, set(contextLine), headerLine, set(strings.Replace(contextLine, "A folder.", "Another.", 1))}, "\n")
	if got := importtest.Text(t, log, gemini.Format{}, "stub.jsonl", stub); got.Events != 0 || len(got.Sessions) != 0 {
		t.Errorf("import of a stub: %+v", got)
	}
	importtest.Load(t, log, gemini.Format{}, "f.jsonl", strings.Join(resumed(), "\n"))
	if got := importtest.Text(t, log, gemini.Format{}, "stub.jsonl", stub); got.Events != 0 {
		t.Errorf("import of a stub: %+v", got)
	}
}

func TestMessagesOfASet(t *testing.T) {
	log := importtest.NewLog(t)
	lines := []string{
		headerLine, set(contextLine, user("u1", "What?"), answer("a1", `"content":"A box."`)),
		set(contextLine, user("u1", "What?"), answer("a1", `"content":"A box."`), user("u2", "Why?")),
		set(contextLine), user("u3", "Anew."),
	}
	importtest.Load(t, log, gemini.Format{}, "f.jsonl", strings.Join(lines, "\n"))
	importtest.Same(t, "active path", []string{"session_started", "user <session_context>\nA…", "head_moved to 2", "user Anew.…"}, importtest.Outline(t, log, "s"))
	if n := len(importtest.Events(t, log, "s")); n != 7 {
		t.Errorf("%d events", n)
	}
}

func TestAResultWithoutItsMessage(t *testing.T) {
	log := importtest.NewLog(t)
	lines := []string{headerLine, user("u1", "List."), answer("a1", `"content":[{"text":"I look."},{"functionCall":`+theCall+`}]`), asked("u2", theResponse)}
	importtest.Load(t, log, gemini.Format{}, "f.jsonl", strings.Join(lines, "\n"))
	importtest.Same(t, "active path", []string{"session_started", "user List.…", "assistant I…", "assistant calls run_shell_command", "tool result of run_shell_command"},
		importtest.Outline(t, log, "s"))
}

func TestAMessageWrittenAgainIsOneAnswer(t *testing.T) {
	header, _, _ := strings.Cut(document(), `,"messages"`)
	versions := []string{header + "}", user("a", "What?")}
	for _, v := range []string{"A b", "A bo", "A box."} {
		versions = append(versions, answer("b", fmt.Sprintf(`"content":%q,"tokens":{"input":10,"output":%d}`, v, len(v))))
	}
	versions = append(versions, answer("b", `"content":"A box.","tokens":{"input":10,"output":6},"toolCalls":[`+theCall+`]`), "")
	for n := range versions {
		importtest.Grows(t, gemini.Format{}, "f", strings.Join(versions[:n], "\n"), strings.Join(versions, "\n"))
	}
	log := importtest.NewLog(t)
	importtest.Load(t, log, gemini.Format{}, "f", strings.Join(versions, "\n"))
	importtest.Same(t, "active path", []string{"session_started", "user What?…", "head_moved to 2", "assistant A…", "assistant calls run_shell_command"}, importtest.Outline(t, log, "s"))
	got, err := stats.Load(t.Context(), log, "s")
	if x := got.Total; err != nil || x.Responses != 1 || x.Messages != 2 || x.Usage.OutputTokens != 6 {
		t.Errorf("stats: %+v, %v", got, err)
	}
}

// A message that was written again, and then comes in its first version after a rewind, adds
// nothing, wherever the file was cut between two imports.
func TestTheFirstVersionComesAgain(t *testing.T) {
	rewind := `{"$rewindTo":"m0"}` + "\n"
	first, again := user("m0", "Count")+"\n", answer("m0", `"content":""`)+"\n"
	lines := []string{`{"sessionId":"s","projectHash":"p"}` + "\n", rewind, first, again, rewind, first, rewind}
	for cut := range lines {
		importtest.Lines{Format: gemini.Format{}}.Grows(t, lines, []int{cut})
	}
}

// A call has the time of its result in the list of calls; the message with the list is older.
func TestResultsHaveTheTimeOfTheirCall(t *testing.T) {
	log := importtest.NewLog(t)
	call := func(id, members string) string {
		return fmt.Sprintf(`{"id":%q,"name":"read","args":{},"result":[{"functionResponse":{"id":%q,"name":"read","response":{"output":"4"}}}]%s}`, id, id, members)
	}
	calls := call("c", `,"timestamp":"2026-01-01T00:00:09Z"`) + "," + call("d", "") + "," + call("e", `,"timestamp":"2025-01-01T00:00:00Z"`)
	importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":[`+calls+`]`))
	want := []string{"00:00", "00:01", "00:02", "00:02", "00:09", "00:02", "00:02", "00:02", "00:02"}
	var got []string
	for _, e := range importtest.Events(t, log, "s") {
		got = append(got, e.Timestamp.Format("04:05"))
	}
	importtest.Same(t, "times", want, got)
}
