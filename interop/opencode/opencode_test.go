package opencode_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/opencode"
)

var (
	session = filepath.Join("../../testdata/transcripts/opencode", "session.json")
	format  = opencode.Format{}
)

const id = "ses_1a2b3c4d"

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.json", map[string]bool{
		`{"info":{"id":"ses_1","projectID":"p","directory":"/d","title":"cut`: true,
		`{"info":{"id":"ses_1","directory":"/d","version":"1"},"messages":[`:  true,
		`{"info":{"mini_version":"1"},"messages":[]}`:                         false,
		`{"info":{"id":7,"projectID":"p"},"messages":[]}`:                     false,
		`{"id":"ses_1","messages":[{"role":"user","content":"Hi"}]}`:          false,
		"": false,
	})
}

func TestASession(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, session)
	got := importtest.Load(t, log, format, "s.json", content)
	importtest.Again(t, log, format, "s.json", content)
	if got.Records != 18 || got.Raw != 5 || len(got.Rejected) != 0 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "user When… image", "opencode:agent", "opencode:step-start", "assistant reasoning", "assistant Let…",
		`assistant calls read {"filePath":"tide.txt"}`, "tool result of read: noon", `assistant calls bash {"command":"x"}`,
		"tool failed result of bash: No such command", "step_completed 100+8 0.5", "opencode:step-start", "assistant At…",
		"step_completed 50+2 0.25", "opencode:patch", "user And…", `assistant calls bash {"command":"sleep"}`,
		"step_completed 9+9 0.75", "opencode:error",
	}, importtest.Path(t, log, id))
	start, all := importtest.Start(t, log, id), importtest.Messages(t, log, id)
	if start.Title != "High water" || start.CWD != "/home/ada/tide" || start.Parent.SessionID != "ses_0" || start.Source.Version != "1.4.0" {
		t.Errorf("the session starts with %+v", start)
	}
	if all[0].Parts[1].Name != "tide.png" || all[0].Parts[1].Blob.Bytes != 8 || all[1].Group != "msg_2" || all[1].Model != "tidal-7" {
		t.Errorf("the question is %+v and the answer %+v", all[0], all[1])
	}
	e := importtest.Events(t, log, id)[7]
	if e.Timestamp.UnixMilli() != 1767225603000 {
		t.Errorf("the result came at %v", e.Timestamp)
	}
}

// A growing session gets messages at its end, and results of its calls.
func TestGrowingSession(t *testing.T) {
	content := importtest.ReadFile(t, session)
	short := content[:strings.Index(content, `    {
      "info": {
        "id": "msg_3"`)]
	importtest.Grows(t, format, "s.json", strings.TrimRight(short, ", \n")+`],"todos":[]}`, content)

	log := importtest.NewLog(t)
	importtest.Load(t, log, format, "s.json", content)
	done := strings.Replace(content, `"status": "running"`, `"status": "completed", "output": "slept"`, 1)
	got := importtest.Load(t, log, format, "s.json", done)
	importtest.Again(t, log, format, "s.json", done)
	path := importtest.Path(t, log, id)
	if got.Events != 1 || path[len(path)-1] != "tool result of bash: slept" {
		t.Errorf("import: %+v, and the path ends with %q", got, path[len(path)-1])
	}
}

// The result of a call may come after later messages.
func TestLateResult(t *testing.T) {
	log := importtest.NewLog(t)
	begin := `{"info":{"id":"s","projectID":"p"},"messages":[{"info":{"id":"u","role":"user"},"parts":[{"id":"p0","type":"text","text":"Go"}]},{"info":{"id":"a","role":"assistant"},"parts":[{"id":"p1","type":"tool","callID":"c1","tool":"bash","state":{"status":`
	other := `}},{"id":"p2","type":"tool","callID":"c2","tool":"bash","state":{"status":"completed","input":{},"output":"two"}}]}]}`
	importtest.Load(t, log, format, "s.json", begin+`"running","input":{}`+other)
	grown := begin + `"completed","input":{},"output":"one"` + other
	got := importtest.Load(t, log, format, "s.json", grown)
	importtest.Again(t, log, format, "s.json", grown)
	importtest.Same(t, "active path", []string{
		"session_started", "user Go…", "assistant calls bash {}", "assistant calls bash {}", "tool result of bash: two", "tool result of bash: one",
	}, importtest.Path(t, log, "s"))
	if got.Events != 1 {
		t.Errorf("import: %+v", got)
	}
}

// A changed part is added raw, and a new title is an update.
func TestChangedSession(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, session)
	importtest.Load(t, log, format, "s.json", content)
	changed := strings.Replace(strings.Replace(content, "At noon.", "At one.", 1), `"High water"`, `"Low water"`, 1)
	got := importtest.Load(t, log, format, "s.json", changed)
	importtest.Again(t, log, format, "s.json", changed)
	all := importtest.Events(t, log, id)
	if got.Events != 2 || got.Raw != 1 || all[len(all)-2].Type != event.SessionUpdated || all[len(all)-1].Type != "opencode:part" {
		t.Errorf("import: %+v, and the log ends with %s and %s", got, all[len(all)-2].Type, all[len(all)-1].Type)
	}
}

// An export with masked ids has messages, parts and calls with one id. None of them is lost.
func TestMaskedIDs(t *testing.T) {
	call := func(output string) string {
		return `{"id":"X","type":"tool","callID":"X","tool":"bash","state":{"status":"completed","input":{},"output":"` + output + `"}}`
	}
	message := func(role, parts string) string {
		return `{"info":{"id":"X","role":"` + role + `"},"parts":[` + parts + `]}`
	}
	text := func(s string) string { return `{"id":"X","type":"text","text":"` + s + `"}` }
	content := `{"info":{"id":"s","projectID":"p"},"messages":[` + message("user", text("Go")) + "," +
		message("assistant", call("one")+","+call("two")+","+text("Good")) + "," + message("user", text("On")) + "," + message("assistant", text("Good")) + "]}"
	log := importtest.NewLog(t)
	importtest.Load(t, log, format, "s.json", content)
	importtest.Again(t, log, format, "s.json", content)
	importtest.Same(t, "active path", []string{
		"session_started", "user Go…", "assistant calls bash {}", "tool result of bash: one", "assistant calls bash {}", "tool result of bash: two",
		"assistant Good…", "user On…", "assistant Good…",
	}, importtest.Path(t, log, "s"))
	ids := map[string]int{}
	for _, m := range importtest.Messages(t, log, "s") {
		for _, call := range m.ToolCalls() {
			ids[call.CallID]++
		}
	}
	importtest.Same(t, "ids of calls", map[string]int{"X": 1, "X-2": 1}, ids)
	importtest.Grows(t, format, "s.json", content[:strings.Index(content, `,{"info":{"id":"X","role":"user"},"parts":[{"id":"X","type":"text","text":"On"`)]+"]}", content)
}

func TestMalformedMessages(t *testing.T) {
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, format, "s.json", `{"info":{"id":"s","projectID":"p"},"messages":[7,{"info":{"id":"m","role":"judge"},"parts":[]},{"info":{"id":"a","role":"assistant"},"parts":[]},{"info":{"id":"b","role":"assistant"},"parts":[7,{"type":"tool","state":{}}]}]}`)
	if got.Raw != 4 || got.Imported != 1 || got.Skipped != 1 {
		t.Errorf("import: %+v", got)
	}
	got = importtest.Load(t, log, format, "s.json", importtest.ReadFile(t, session)[:2000])
	if len(got.Rejected) != 1 || got.Events != 0 {
		t.Errorf("import: %+v", got)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "s.json", session) }
