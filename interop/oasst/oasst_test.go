package oasst_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/oasst"
)

const (
	transcripts = "../../testdata/transcripts/oasst"
	tree        = "7d0c0000-0000-4000-8000-000000000001"
	flat        = "7d0c0000-0000-4000-8000-000000000003"
)

var (
	trees    = filepath.Join(transcripts, "trees.jsonl")
	messages = filepath.Join(transcripts, "messages.jsonl")
	format   = oasst.Format{}
)

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.jsonl", map[string]bool{
		`{"message_tree_id":"t","tree_state":"s","prompt":{"message_id":"m","text":"cut`: true,
		`{"message_id":"m","parent_id":null,"text":"Hi","role":"prompter"}`:              true,
		`{"message_id":"m","role":"user","content":"Hi"}`:                                false,
		`{"message_tree_id":"t","prompt":"Hi"}`:                                          false,
		`[{"message_id":"m","text":"Hi"}]`:                                               false,
		"":                                                                               false,
	})
}

// all returns an outline of all events of a session.
func all(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range importtest.Events(t, log, session) {
		lines = append(lines, importtest.Draw(t, &e))
	}
	return lines
}

func TestTrees(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, trees)
	got := importtest.Load(t, log, format, "trees.jsonl", content)
	importtest.Again(t, log, format, "trees.jsonl", content)
	if got.Records != 7 || got.Imported != 7 || len(got.Sessions) != 2 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "log", []string{
		"session_started", "user When…", "assistant Never.…", "head_moved to 2", "assistant At…", "user And…",
		"assistant Everywhere.…", "head_moved to 6", "assistant At…",
	}, all(t, log, tree))
	importtest.Same(t, "active path", []string{
		"session_started", "user When…", "head_moved to 2", "assistant At…", "user And…", "head_moved to 6", "assistant At…",
	}, importtest.Path(t, log, tree))
	move, _, err := event.Decode[event.HeadMove](&importtest.Events(t, log, tree)[7])
	if err != nil || move.Label != "rank 0" {
		t.Errorf("the head moves by %+v, %v", move, err)
	}
	best := importtest.Messages(t, log, tree)[3]
	importtest.Same(t, "extra", `{"message_id":"m5","role":"assistant","rank":0,"labels":{"quality":{"value":0.75,"count":3}}}`, string(best.Extra))
	if at := importtest.Events(t, log, tree)[1].Timestamp; at.Format("15:04:05.000000") != "14:23:50.983374" {
		t.Errorf("the time of the message is %v", at)
	}
}

// Later replies become more branches, and the path ends with the best reply.
func TestGrowingTree(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, trees)
	importtest.Load(t, log, format, "trees.jsonl", content)
	reply := `{"message_id":"m7","parent_id":"m3","text":"Nowhere.","role":"assistant","rank":2,"replies":[]}`
	grown := strings.Replace(content, `,"replies":[{"message_id":"m4"`, `,"replies":[`+reply+`,{"message_id":"m4"`, 1)
	got := importtest.Load(t, log, format, "trees.jsonl", grown)
	importtest.Again(t, log, format, "trees.jsonl", grown)
	if got.Events != 3 || got.Imported != 1 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "log", []string{"head_moved to 6", "assistant Nowhere.…", "head_moved to 9"}, all(t, log, tree)[9:])
	importtest.Same(t, "active path", []string{
		"session_started", "user When…", "head_moved to 2", "assistant At…", "user And…", "head_moved to 6", "assistant At…", "head_moved to 9",
	}, importtest.Path(t, log, tree))
}

func TestLinesOfMessages(t *testing.T) {
	content := importtest.ReadFile(t, messages)
	lines := strings.SplitAfter(strings.TrimSpace(content), "\n")
	var versions []string
	for n := range lines {
		versions = append(versions, strings.Join(lines[:n+1], ""))
	}
	importtest.Grows(t, format, "messages.jsonl", versions...)

	log := importtest.NewLog(t)
	importtest.Load(t, log, format, "messages.jsonl", content)
	importtest.Same(t, "log", []string{
		"session_started", "user What…", "assistant A…", "head_moved to 2", "assistant A…", "head_moved to 3", "user Thanks…",
	}, all(t, log, flat))
}

func TestInvalidLines(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, trees)
	got := importtest.Load(t, log, format, "trees.jsonl", content[:len(content)-90]+"\n"+`{"message_id":7}`+"\n"+`{"message_id":"x","text":"t","replies":[7]}`)
	if len(got.Rejected) != 3 || len(got.Sessions) != 1 {
		t.Errorf("import: %+v", got)
	}
	importtest.Load(t, log, format, "trees.jsonl", content)
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.jsonl", trees, messages) }

// The messages of a tree can come as a tree and as lines, in either order. The path
// and the messages are the same, and nothing is added twice.
func TestTreeAndMessageLines(t *testing.T) {
	const id = "7d0c0000-0000-4000-8000-000000000009"
	message := func(name, parent, role, text, rank string) string {
		return `{"message_id":"` + name + `","parent_id":` + parent + `,"message_tree_id":"` + id + `","role":"` + role + `","text":"` + text + `","rank":` + rank + `,"created_date":"2026-02-05T14:23:50+00:00"`
	}
	prompt := message(id, "null", "prompter", "High water?", "null")
	best, worse := message("r1", `"`+id+`"`, "assistant", "Noon", "0"), message("r2", `"`+id+`"`, "assistant", "One", "1")
	thanks := message("p1", `"r1"`, "prompter", "Thanks", "null")
	tree := `{"message_tree_id":"` + id + `","tree_state":"ready","prompt":` + prompt + `,"replies":[` + worse + `},` + best + `,"replies":[` + thanks + `}]}]}}`
	lines := prompt + "}\n" + best + "}\n" + thanks + "}\n" + worse + "}\n" // the worse reply comes last
	for name, order := range map[string][]string{"the tree first": {tree, lines}, "the messages first": {lines, tree}} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			for i, text := range append(order, order...) {
				got := importtest.Load(t, log, format, "f", text)
				if i > 0 && (got.Present != 4 || got.Raw > 0) || i > 1 && got.Events > 0 {
					t.Errorf("import %d: %+v", i, got)
				}
			}
			importtest.Verify(t, log)
			var texts []string
			for _, m := range importtest.Messages(t, log, id) {
				texts = append(texts, m.Text())
			}
			importtest.Same(t, "path", []string{"High water?", "Noon", "Thanks"}, texts)
			start, last := importtest.Start(t, log, id), ""
			for _, e := range importtest.Events(t, log, id) {
				if about, ok, err := event.Decode[event.Session](&e); ok && err == nil && about.Extra != nil {
					last = string(about.Extra)
				}
			}
			if start.Title != "High water?" || last != `{"message_tree_id":"`+id+`","tree_state":"ready"}` {
				t.Errorf("the session starts with %+v, its last extra is %s", start, last)
			}
		})
	}
}
