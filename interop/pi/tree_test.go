package pi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
)

const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/srv"}`

// entry is a message line of version 3.
func entry(id, parent, message string) string {
	return line(id, parent, `"type":"message","message":{`+message+`}`)
}

// line is a record of version 3.
func line(id, parent, members string) string {
	if parent = `"` + parent + `"`; parent == `""` {
		parent = "null"
	}
	return fmt.Sprintf(`{"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",%s}`, id, parent, members)
}

func user(id, parent, text string) string {
	return entry(id, parent, fmt.Sprintf(`"role":"user","content":%q`, text))
}

func model(id, parent string) string {
	return line(id, parent, `"type":"model_change","provider":"anthropic","modelId":"`+id+`"`)
}

func TestTheHeadFollowsTheLastLine(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  []string // the active path after session_started
	}{
		{
			"the first prompt edited", []string{model("a", ""), user("b", "a", "One"), user("c", "", "Two")},
			[]string{"head_moved to 1", "user Two…"},
		},
		{
			"from the model change on", []string{model("a", ""), user("b", "a", "One"), user("c", "a", "Two")},
			[]string{"pi:model_change", "head_moved to 2", "user Two…"},
		},
		{
			"only bookkeeping leaves the path", []string{user("a", "", "One"), model("b", "a"), user("c", "a", "Two")},
			[]string{"user One…", "pi:model_change", "user Two…"},
		},
		{
			"several children without messages", []string{user("a", "", "One"), model("b", "a"), model("c", "a"), model("d", "b"), user("e", "b", "Two")},
			[]string{"user One…", "pi:model_change", "pi:model_change", "pi:model_change", "user Two…"},
		},
		{
			"back, and bookkeeping there", []string{user("a", "", "One"), user("b", "a", "Two"), model("c", "a")},
			[]string{"user One…", "head_moved to 2", "pi:model_change"},
		},
		{
			"there and back", []string{user("a", "", "One"), user("b", "a", "Two"), user("c", "a", "Three"), user("d", "b", "Four"), user("e", "c", "Five")},
			[]string{"user One…", "head_moved to 2", "user Three…", "head_moved to 5", "user Five…"},
		},
		{
			"a missing parent", []string{user("a", "", "One"), user("b", "gone", "Two"), user("c", "b", "Three")},
			[]string{"user One…", "user Two…", "user Three…"},
		},
		{
			"its own parent", []string{user("a", "", "One"), user("b", "b", "Two")},
			[]string{"user One…", "user Two…"},
		},
		{
			"a parent after its child", []string{user("a", "", "One"), user("b", "c", "Two"), user("c", "a", "Three")},
			[]string{"user One…", "head_moved to 2", "user Three…"},
		},
		{
			"an id twice", []string{user("a", "", "One"), user("b", "a", "Two"), user("b", "a", "Three"), user("c", "b", "Four")},
			[]string{"user One…", "head_moved to 2", "user Three…", "user Four…"},
		},
		{
			"equal lines", []string{user("a", "", "One"), user("b", "a", "One"), user("c", "b", "One")},
			[]string{"user One…", "user One…", "user One…"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := importtest.NewLog(t)
			lines := append([]string{header}, test.lines...)
			importLines(t, log, lines...)
			importtest.Same(t, "active path", test.want, importtest.Outline(t, log, "s")[1:])
			if got := importLines(t, log, lines...); got.Events != 0 {
				t.Errorf("import again: %+v", got)
			}
		})
	}
}

func TestCompactionsOnBranches(t *testing.T) {
	log := importtest.NewLog(t)
	importLines(t, log, header, user("a", "", "One"), user("b", "a", "Two"), user("c", "a", "Three"), model("d", "c"), user("e", "d", "Four"),
		line("f", "e", `"type":"compaction","summary":"Counting.","firstKeptEntryId":"d","tokensBefore":7`),
		line("g", "f", `"type":"compaction","summary":"Counting on.","firstKeptEntryId":"b","tokensBefore":-7`),
		line("h", "g", `"type":"compaction","summary":"","firstKeptEntryIndex":1`),
		line("i", "h", `"type":"compaction","summary":"End.","firstKeptEntryIndex":0`))
	var kept [][]int64
	for _, e := range importtest.Events(t, log, "s") {
		if c, ok, err := event.Decode[event.Compaction](&e); ok && err == nil {
			kept = append(kept, seqsOf(c.Entries))
		}
	}
	importtest.Same(t, "kept", [][]int64{{0, 7}, nil, {2, 5, 7}, nil}, kept)
}

func TestGrowthAfterARewindInTheLog(t *testing.T) {
	log := importtest.NewLog(t)
	lines := []string{header, user("a", "", "One"), user("b", "a", "Two")}
	importLines(t, log, lines...)
	importtest.Rewind(t, log, "s", 2)
	importLines(t, log, append(lines, user("c", "b", "Three"))...)
	importtest.Same(t, "active path", []string{"session_started", "user One…", "user Two…", "head_moved to 3", "user Three…"}, importtest.Outline(t, log, "s"))
}

func TestDivergedFilesBecomeBranches(t *testing.T) {
	log := importtest.NewLog(t)
	lines := []string{header, user("a", "", "One"), user("b", "a", "Two")}
	other := []string{header, user("a", "", "One"), user("c", "a", "Three")}
	importLines(t, log, lines...)
	importLines(t, log, other...)
	importtest.Same(t, "active path", []string{"session_started", "user One…", "head_moved to 2", "user Three…"}, importtest.Outline(t, log, "s"))
	if got := importLines(t, log, lines...); got.Events != 0 {
		t.Errorf("the first file again: %+v", got)
	}
}

func TestTwoSessionsInOneFile(t *testing.T) {
	log := importtest.NewLog(t)
	second := strings.Replace(header, `"s"`, `"t"`, 1)
	got := importLines(t, log, header, user("a", "", "One"), second, user("b", "", "Two"), header, user("c", "a", "Three"), header)
	if got.Raw != 2 || len(got.Sessions) != 2 {
		t.Errorf("import: %+v", got)
	}
	importtest.Same(t, "the first", []string{"session_started", "user One…", "pi:session", "user Three…", "pi:session"}, importtest.Outline(t, log, "s"))
	importtest.Same(t, "the second", []string{"session_started", "user Two…"}, importtest.Outline(t, log, "t"))
}

func TestOnlyBookkeepingIsHeld(t *testing.T) {
	log := importtest.NewLog(t)
	lines := []string{header, model("a", ""), line("b", "a", `"type":"session_info","name":" Bees \n and wasps"`)}
	if got := importLines(t, log, lines...); got.Skipped != 3 || got.Events != 0 {
		t.Errorf("import of bookkeeping: %+v", got)
	}
	if got := importLines(t, log, append(lines, user("c", "b", "One"))...); got.Skipped != 0 || got.Events != 4 {
		t.Errorf("import after the session has begun: %+v", got)
	}
	if start, _, err := event.Decode[event.Session](&importtest.Events(t, log, "s")[0]); err != nil || start.Title != "Bees" {
		t.Errorf("title is %q, %v", start.Title, err)
	}
}

func TestRecordsBeforeAHeaderAreHeld(t *testing.T) {
	log := importtest.NewLog(t)
	if got := importLines(t, log, user("a", "", "One"), header, user("b", "", "Two")); got.Skipped != 1 || got.Events != 2 {
		t.Errorf("import: %+v", got)
	}
}
