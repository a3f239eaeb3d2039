package opencode_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
)

var compacted = filepath.Join("../../testdata/transcripts/opencode", "compacted.json")

// history returns an outline of the effective history.
func history(t *testing.T, log *eventlog.Log, id string) (lines []string) {
	t.Helper()
	for _, e := range importtest.History(t, log, id) {
		lines = append(lines, importtest.Draw(t, messageEvent(t, e.Message)))
	}
	return lines
}

func messageEvent(t *testing.T, m event.Message) *event.Event {
	t.Helper()
	e := event.New(m)
	return &e
}

func TestCompactionAndRevert(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, compacted)
	got := importtest.Load(t, log, format, "s.json", content)
	importtest.Again(t, log, format, "s.json", content)
	if got.Raw != 2 || len(got.Rejected) != 0 {
		t.Errorf("import: %+v", got)
	}
	path := importtest.Path(t, log, "ses_gull")
	importtest.Same(t, "active path", []string{
		"session_started", "user Count…", `assistant calls count {"where":"east"}`, "tool result of count: 3 gulls",
		`assistant calls count {"where":"west"}`, "tool result of count: none", "assistant Three…", "step_completed 10+2 0.125",
		"compaction_triggered", "user And…", "assistant None.…", "step_completed 10+2 0.125",
		"user", "opencode:compaction", "assistant Three…", "step_completed 10+2 0.125", "compaction_triggered",
		"user Write…", "assistant Written.…", "step_completed 10+2 0.125",
		"user", "opencode:compaction", "assistant Three…", "step_completed 10+2 0.125", "compaction_triggered",
	}, path[:len(path)-1])
	if path[len(path)-1] != "head_moved to 25" {
		t.Errorf("the path ends with %s", path[len(path)-1])
	}
	importtest.Same(t, "history", []string{"user Three…"}, history(t, log, "ses_gull"))
}

// After each compaction, the history is the context that OpenCode shows the model.
func TestHistoryAfterCompactions(t *testing.T) {
	content := importtest.ReadFile(t, compacted)
	for until, want := range map[string][]string{
		"msg_21": {
			"user Count…", `assistant calls count {"where":"east"} calls count {"where":"west"} Three…`,
			"tool result of count: [cleared]", "tool result of count: none",
		},
		"msg_41": {"user Three…", "user And…", "assistant None.…"},
		"msg_51": {"user Three…", "user And…", "assistant None.…", "user Write…", "assistant Written.…"},
	} {
		log := importtest.NewLog(t)
		importtest.Load(t, log, format, "s.json", beforeMessage(t, content, until))
		importtest.Same(t, "history before "+until, want, history(t, log, "ses_gull"))
	}
}

// beforeMessage is the document up to a message.
func beforeMessage(t *testing.T, content, message string) string {
	t.Helper()
	at := strings.Index(content, `  {
   "info": {
    "id": "`+message+`"`)
	if at < 0 {
		t.Fatalf("no message %s", message)
	}
	return strings.TrimRight(content[:at], ", \n") + "]}"
}

// Law: the import of a growing session gives the same log as the import of the whole
// session.
func TestCompactedSessionGrows(t *testing.T) {
	content := importtest.ReadFile(t, compacted)
	content = strings.Replace(content, `"messageID": "msg_61"`, `"messageID": "none"`, 1)
	importtest.Grows(t, format, "s.json", beforeMessage(t, content, "msg_12"), beforeMessage(t, content, "msg_31"), beforeMessage(t, content, "msg_32"), beforeMessage(t, content, "msg_51"), content)
}

// The message after a revert follows the message that the session was reverted to.
func TestSessionContinuesAfterARevert(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, compacted)
	importtest.Load(t, log, format, "s.json", content)
	next := strings.Replace(beforeMessage(t, content, "msg_61"), `"messageID": "msg_61"`, `"messageID": "none"`, 1)
	next = strings.TrimSuffix(next, "]}") + `,{"info":{"id":"msg_71","role":"user"},"parts":[{"id":"prt_710","type":"text","text":"Keep it."}]}]}`
	importtest.Load(t, log, format, "s.json", next)
	importtest.Again(t, log, format, "s.json", next)
	path := importtest.Path(t, log, "ses_gull")
	if got := path[len(path)-1]; got != "user Keep…" || strings.Contains(strings.Join(path, "\n"), "Throw") {
		t.Errorf("active path is %q", path)
	}
}

func FuzzImportCompacted(f *testing.F) { importtest.Fuzz(f, format, "s.json", compacted) }
