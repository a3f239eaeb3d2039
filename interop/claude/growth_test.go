package claude_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
)

// growingFiles are files to import prefix by prefix.
func growingFiles() []string {
	return []string{
		sample("-home-ada-birdlog", coding), sample("-home-ada-birdlog", branched),
		sample("-home-ada-tidepool", compacted), sample("-home-ada-tidepool", picture),
		filepath.Join(transcripts, "samples", "-home-ada-birdlog", coding, "subagents", "agent-b7d21e0.jsonl"),
		fixture("broken.jsonl"), fixture("growing-2.jsonl"), fixture("sidechains.jsonl"), fixture("commands.jsonl"),
	}
}

func TestGrowingFileGivesTheSameLog(t *testing.T) {
	for _, file := range growingFiles() {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := importtest.ReadFile(t, file)
			importtest.Lines{Format: claude.Format{}}.GrowsByBytes(t, text, importtest.Cuts(text))
		})
	}
}

func TestGrowingPair(t *testing.T) {
	log := importtest.NewLog(t)
	first := load(t, log, fixture("growing-1.jsonl"))
	second := load(t, log, fixture("growing-2.jsonl"))
	if first.Events != 5 || second.Present != 4 || second.Events != 9 {
		t.Errorf("first %+v, then %+v", first, second)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "claude:mode", "user Load…", "assistant calls Read", "assistant calls Read",
		"tool result of Read", "tool result of Read", "assistant Celadon…", "head_moved to 8", "user What…", "assistant Nothing…",
	}, importtest.Outline(t, log, kiln+"2"))
}

func TestOnlyBookkeepingIsHeld(t *testing.T) {
	log := importtest.NewLog(t)
	head := `{"type":"file-history-snapshot","messageId":"m","snapshot":{}}` + "\n" + `{"type":"mode","mode":"normal","sessionId":"s"}` + "\n"
	got, err := loadText(t, log, "f", head)
	if err != nil || got.Skipped != 2 || got.Events != 0 || len(importtest.Sessions(t, log)) != 0 {
		t.Errorf("import of bookkeeping: %+v, %v", got, err)
	}
	got, err = loadText(t, log, "f", head+userPrompt("s", "u1", "", "Hello"))
	if err != nil || got.Skipped != 0 || got.Events != 4 {
		t.Errorf("import after the session has begun: %+v, %v", got, err)
	}
}

func TestAnotherHistoryIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	if _, err := loadText(t, log, "a", userPrompt("s", "u1", "", "One")+userPrompt("s", "u2", "u1", "Two")); err != nil {
		t.Fatal(err)
	}
	before := importtest.Contents(t, log)
	got, err := loadText(t, log, "b", `{"type":"mode","mode":"normal","sessionId":"s"}`+"\n"+userPrompt("s", "x1", "", "Three"))
	var history *records.HistoryError
	if !errors.Is(err, interop.ErrHistory) || !errors.As(err, &history) || history.Line != 2 || history.Offset != 48 || history.Session != "s" {
		t.Errorf("error is %v", err)
	}
	if got.Events != 0 {
		t.Errorf("%d events were written", got.Events)
	}
	importtest.Same(t, "log", before, importtest.Contents(t, log))
}

func TestAContinuationIsAppended(t *testing.T) {
	log := importtest.NewLog(t)
	if _, err := loadText(t, log, "a", userPrompt("s", "u1", "", "One")+userPrompt("s", "u2", "u1", "Two")); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{
		"some of its records": userPrompt("s", "u2", "u1", "Two"),
		"next line":           userPrompt("s", "u3", "u2", "Three"),
	} {
		if _, err := loadText(t, log, name, part); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	importtest.Same(t, "active path", []string{"session_started", "user One…", "user Two…", "user Three…"}, importtest.Outline(t, log, "s"))
}

// A file with lines of a session that another file begins is imported after that
// file, whatever the names. If no file begins the session, these lines begin it.
func TestFilesThatNeedEachOther(t *testing.T) {
	line := func(session, uuid, parent string) string { return userPrompt(session, uuid, parent, uuid) }
	note := `{"type":"system","sessionId":"s","uuid":"n","parentUuid":"1","timestamp":"2026-01-01T00:00:00Z","content":"noted"}` + "\n"
	for _, c := range []struct {
		name  string
		files []string
		want  map[string][]string // messages on the active path
	}{
		{"no file begins it", []string{line("s", "3", "2")}, map[string][]string{"s": {"3"}}},
		{"begun later", []string{line("t", "1", "") + line("s", "3", "2") + line("t", "2", "1"), line("s", "1", "") + line("s", "2", "1")},
			map[string][]string{"s": {"1", "2", "3"}, "t": {"1", "2"}}},
		{"a branch in the next file", []string{line("s", "1", "") + line("t", "9", "gone") + line("s", "2", "1"), line("s", "3", "1")},
			map[string][]string{"s": {"1", "3"}, "t": {"9"}}},
		{"more in the next file", []string{line("s", "1", "") + line("t", "9", "gone") + line("s", "2", "1"), line("s", "3", "2")},
			map[string][]string{"s": {"1", "2", "3"}, "t": {"9"}}},
		{"the newest first", []string{line("s", "7", "6"), line("s", "5", "4") + line("s", "6", "5"), line("s", "1", "") + line("s", "4", "1")},
			map[string][]string{"s": {"1", "4", "5", "6", "7"}}},
		{"a chain", []string{line("s", "2", "1"), line("t", "2", "1") + line("s", "1", ""), line("t", "1", "")},
			map[string][]string{"s": {"1", "2"}, "t": {"1", "2"}}},
		{"a long chain", []string{
			line("s", "8", "7"), line("s", "7", "6"), line("s", "6", "5"), line("s", "5", "4"), line("s", "4", "3"), line("s", "3", "2"), line("s", "2", "1"), line("s", "1", ""),
		}, map[string][]string{"s": {"1", "2", "3", "4", "5", "6", "7", "8"}}},
		{"the parent is in no file", []string{line("s", "5", "gone"), line("t", "1", "")}, map[string][]string{"s": {"5"}, "t": {"1"}}},
		{"two copies", []string{line("s", "3", "2"), line("s", "1", "") + line("s", "2", "1"), line("s", "1", "") + line("s", "2", "1")},
			map[string][]string{"s": {"1", "2", "3"}}},
		{"a parent that comes later in the file, and a copy", []string{line("s", "3", "2") + line("s", "2", "1"), line("s", "3", "2") + line("s", "2", "1")},
			map[string][]string{"s": {"3", "2"}}},
		{"notes before all others", []string{note, line("s", "3", "2"), line("s", "1", "") + line("s", "2", "1")}, map[string][]string{"s": {"1", "2", "3"}}},
		{"only notes", []string{note, line("s", "1", "") + line("s", "2", "1")}, map[string][]string{"s": {"1", "2"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var files []interop.Source
			records := 0
			for i, text := range c.files {
				files = append(files, importtest.Source(fmt.Sprint(i), text))
				records += strings.Count(text, "\n")
			}
			log := importtest.NewLog(t)
			for again := range 2 {
				table, err := interop.Import(t.Context(), log, []interop.Format{claude.Format{}}, nil, interop.Options{Sources: files})
				got := table.Total()
				if slices.ContainsFunc(table.Rows, func(row interop.Row) bool { return row.Cycle != "" }) {
					t.Errorf("a cycle among %+v", table.Rows)
				}
				if err != nil || again == 1 && got.Events > 0 || got.Imported+got.Present+got.Raw != records {
					t.Errorf("import %d of %d records: %+v, %v", again, records, got, err)
				}
			}
			for session, want := range c.want {
				var texts []string
				for _, m := range importtest.Messages(t, log, session) {
					texts = append(texts, m.Parts[0].Text)
				}
				importtest.Same(t, session, want, texts)
			}
		})
	}
}

// Two files that each begin the session that the other continues are a cycle. The
// table says which file came first, and the other one's beginning is a conflict.
func TestFilesThatBeginEachOther(t *testing.T) {
	files := []interop.Source{
		importtest.Source("1", userPrompt("s", "s2", "s1", "2")+userPrompt("t", "t1", "", "1")),
		importtest.Source("2", userPrompt("s", "s1", "", "1")+userPrompt("t", "t2", "t1", "2")),
	}
	table, err := interop.Import(t.Context(), importtest.NewLog(t), []interop.Format{claude.Format{}}, nil, interop.Options{Sources: files})
	if len(table.Rows) != 2 || table.Rows[0].Path != "2" || table.Rows[0].Cycle != "1" || table.Rows[1].Cycle != "" {
		t.Errorf("rows %+v", table.Rows)
	}
	var history *records.HistoryError
	if !errors.As(err, &history) || history.Session != "t" || history.Source != "1" {
		t.Errorf("error is %v", err)
	}
	if total := table.Total(); total.Imported != 3 {
		t.Errorf("total is %+v", total)
	}
}

func TestSessionOfAnotherProgramIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	importtest.Say(t, log, "s", event.Message{Role: event.User, Parts: []event.Part{event.Text("mine")}})
	if _, err := loadText(t, log, "f", userPrompt("s", "u1", "", "One")); !errors.Is(err, interop.ErrHistory) {
		t.Errorf("error is %v", err)
	}
}

func TestGrowthAfterARewindInTheLog(t *testing.T) {
	log := importtest.NewLog(t)
	text := userPrompt("s", "u1", "", "One") + userPrompt("s", "u2", "u1", "Two")
	if _, err := loadText(t, log, "f", text); err != nil {
		t.Fatal(err)
	}
	importtest.Rewind(t, log, "s", 2)
	if _, err := loadText(t, log, "f", text+userPrompt("s", "u3", "u2", "Three")); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "active path", []string{"session_started", "user One…", "user Two…", "head_moved to 3", "user Three…"}, importtest.Outline(t, log, "s"))
}

func TestManyEventsAreAppendedInBatches(t *testing.T) {
	var text strings.Builder
	parent := ""
	for i := range 1000 {
		id := fmt.Sprintf("u%d", i)
		text.WriteString(userPrompt("s", id, parent, "Go on"))
		parent = id
	}
	log := importtest.NewLog(t)
	got, err := claude.Format{}.Import(t.Context(), log, importtest.Source("f", text.String()))
	if err != nil || got.Events != 1001 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	head, err := log.Head(t.Context(), "s")
	if err != nil || head.Seq != 1001 {
		t.Errorf("head is %v, %v", head, err)
	}
}

// userPrompt is the line of a prompt.
func userPrompt(session, uuid, parent, text string) string {
	if parent == "" {
		parent = "null"
	} else {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/srv","sessionId":%q,"type":"user",`+
		`"message":{"role":"user","content":%q},"uuid":%q,"timestamp":"2026-01-01T00:00:00.000Z"}`+"\n", parent, session, text, uuid)
}
