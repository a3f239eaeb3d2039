package codex_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog"
)

// What the fork of a person has of its own.
var ownOfFork = []string{
	"session_updated", "turn_started", "user And the lighthouse?", "session_updated And the lighthouse?",
	"assistant It is dark.", "step 0: 100+700 in, 9 out", "turn completed",
}

// What the sub-agent that was forked has of its own.
var ownOfAgent = []string{
	"session_updated", "tool result of spawn_agent", "turn_started", "session_updated",
	"user Review the cranes.", "session_updated Review the cranes.", "assistant They creak.", "step 0: 150+400 in, 12 out", "turn completed",
}

func TestForksOfAParentInTheLog(t *testing.T) {
	log := importtest.NewLog(t)
	table := load(t, log, "agent-forked", "fork", "parent") // the parent is imported first
	for i, want := range []int{41, 26, 36} {
		if got := table.Rows[i].Result; got.Records != want || got.Imported+got.Raw+got.Present != want || got.Skipped != 0 {
			t.Errorf("%s: %+v", table.Rows[i].Path, got)
		}
	}
	parent := drawn(t, log, id("4"))
	for n, want := range map[string]struct {
		point int64
		label string
		own   []string
	}{
		"6": {19, "Noether", ownOfAgent},
		"7": {38, "", ownOfFork},
	} {
		p, ok, err := fork.Parent(t.Context(), log, id(n))
		if err != nil || !ok || p.Session != id("4") || p.Seq != want.point || p.Fork.Label != want.label {
			t.Fatalf("%s is forked from %+v, %v, %v", n, p, ok, err)
		}
		got := drawn(t, log, id(n))
		at := len(got) - len(want.own) - 1
		importtest.Same(t, "what is shared", parent[:at], got[:at])
		importtest.Same(t, "what is its own", append([]string{"session_forked"}, want.own...), got[at:])
	}
	importtest.Same(t, "spent by the sub-agent", event.Usage{InputTokens: 150, CacheReadTokens: 400, OutputTokens: 12, ReasoningTokens: 2}, spent(t, log, id("6")))
	if got := info(t, log, id("6")); got.Labels["agent_nickname"] != "Noether" || got.Labels["model"] != "gpt-5.4-mini" || got.Source.SessionID != id("6") {
		t.Errorf("sub-agent is %+v", got)
	}
	stats, err := runlog.LoadStats(t.Context(), log, id("7"), nil)
	if err != nil || stats.BySource["codex"].Events != 11 {
		t.Errorf("what the fork is counted among: %+v, %v", stats.BySource, err)
	}
	again := load(t, log, "agent-forked", "fork", "parent")
	if total := again.Total(); total.Events != 0 || total.Present != total.Records {
		t.Errorf("second import: %+v", total)
	}
}

func TestForksOfAParentThatIsMissing(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "agent-forked", "fork")
	if got := info(t, log, id("6")); got.Title != "Noether" || got.Parent.SessionID != id("4") {
		t.Errorf("sub-agent is %+v", got)
	}
	for n, want := range map[string]event.Usage{
		"6": {InputTokens: 150, CacheReadTokens: 400, OutputTokens: 12, ReasoningTokens: 2},
		"7": {InputTokens: 100, CacheReadTokens: 700, OutputTokens: 9},
	} {
		importtest.Same(t, "spent by "+n, want, spent(t, log, id(n)))
		inherited, own := 0, 0
		for _, e := range path(t, log, id(n)) {
			if _, marked := e.MetadataValue("inherited"); marked {
				inherited++
			} else if own++; own > 1 && inherited == 0 {
				t.Errorf("%s: event %d comes before the copies", n, e.Seq)
			}
		}
		if inherited < 12 || own < 5 {
			t.Errorf("%s: %d events are copies, %d its own", n, inherited, own)
		}
	}
	load(t, log, "parent")
	if total := load(t, log, "agent-forked", "fork").Rows; total[0].Events != 0 || total[1].Events != 0 {
		t.Errorf("import when the parent is there: %+v", total)
	}
}

func TestAForkThatHasNothingOfItsOwnIsHeld(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "parent")
	text := readFixture(t, "fork")
	lines := strings.SplitAfter(text, "\n")
	got, err := loadText(t, log, strings.Join(lines[:20], ""))
	if err != nil || got.Skipped != 20 || got.Events != 0 {
		t.Errorf("import of the copies: %+v, %v", got, err)
	}
	got, err = loadText(t, log, text)
	if err != nil || got.Skipped != 0 || got.Records != 36 || got.Present != 27 {
		t.Errorf("import of all: %+v, %v", got, err)
	}
}

func TestAForkOfAnotherConversationIsNone(t *testing.T) {
	log := importtest.NewLog(t)
	parent := strings.Replace(readFixture(t, "parent"), "Ask first.", "Never ask.", 1)
	if _, err := loadText(t, log, parent); err != nil {
		t.Fatal(err)
	}
	load(t, log, "fork")
	if _, ok, err := fork.Parent(t.Context(), log, id("7")); ok || err != nil {
		t.Errorf("it is a fork: %v, %v", ok, err)
	}
	importtest.Same(t, "spent", event.Usage{InputTokens: 100, CacheReadTokens: 700, OutputTokens: 9}, spent(t, log, id("7")))
}

func TestWhatWasSaidBetweenCopiesEndsThem(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "parent")
	lines := strings.SplitAfter(readFixture(t, "fork"), "\n")
	for i, line := range lines {
		if strings.Contains(line, `"text":"I ask two reviewers."`) {
			lines[i] = ""
		}
	}
	if _, err := loadText(t, log, strings.Join(lines, "")); err != nil {
		t.Fatal(err)
	}
	p, ok, err := fork.Parent(t.Context(), log, id("7"))
	if err != nil || !ok || p.Seq != 8 {
		t.Errorf("forked from %+v, %v, %v", p, ok, err)
	}
	if got := drawn(t, log, id("7")); strings.Contains(strings.Join(got, "\n"), "I ask two") {
		t.Errorf("the fork says what its file does not:\n%s", strings.Join(got, "\n"))
	}
}

// A rollback is appended with what follows it, so that nothing can be forked
// between them: the fork has a rollback of its own.
func TestAForkBehindARollback(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "rolled-back")
	lines := strings.SplitAfter(readFixture(t, "rolled-back"), "\n")
	at := 0
	for !strings.Contains(lines[at], "thread_rolled_back") {
		at++
	}
	text := opening + strings.Join(lines[:at+1], "") + record("response_item", `"type":"message","role":"user","content":"Name a bay."`)
	if _, err := loadText(t, log, strings.Replace(text, `"id":"s"`, `"id":"s","forked_from_id":"`+id("2")+`"`, 1)); err != nil {
		t.Fatal(err)
	}
	p, ok, err := fork.Parent(t.Context(), log, "s")
	if err != nil || !ok || p.Seq != 27 {
		t.Errorf("forked from %+v, %v, %v", p, ok, err)
	}
	importtest.Same(t, "what follows the first turn", []string{
		"turn completed", "head_moved to 11", "user Name a bay.", "session_updated Name a bay.",
	}, drawn(t, log, "s")[8:])
}

func TestAForkOfAFork(t *testing.T) {
	text := strings.Replace(opening, `"id":"s"`, `"id":"s","forked_from_id":"`+id("7")+`"`, 1) + readFixture(t, "fork") +
		record("event_msg", `"type":"task_started","turn_id":"0190000f"`) + record("response_item", `"type":"message","role":"user","content":"And the moon?"`)
	log := importtest.NewLog(t)
	load(t, log, "parent", "fork")
	for range 2 {
		if _, err := loadText(t, log, text); err != nil {
			t.Fatal(err)
		}
	}
	lineage, err := fork.Lineage(t.Context(), log, "s")
	if err != nil || len(lineage) != 2 || lineage[0].Session != id("7") || lineage[0].Seq != 49 || lineage[1].Session != id("4") || lineage[1].Seq != 38 {
		t.Errorf("lineage is %+v, %v", lineage, err)
	}
	importtest.Same(t, "what is its own", []string{"session_forked", "session_updated", "turn_started", "user And the moon?", "session_updated And the moon?"},
		drawn(t, log, "s")[len(drawn(t, log, id("7"))):])
	importtest.Verify(t, log)
}

func TestChildren(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "parent", "agent-fresh", "agent-forked")
	var got []string
	for _, e := range path(t, log, id("4")) {
		c, ok, err := event.Decode[event.Child](&e)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			got = append(got, strings.Join([]string{string(c.State), c.ChildID, c.ChildSessionID, c.CallID, c.Agent, string(c.Mode), c.Task, c.Status, c.Error}, "|"))
		}
	}
	importtest.Same(t, "children", []string{
		"requested|s1||s1|explorer|fresh|Review the locks.||",
		"started|s1|" + id("5") + "|s1|Hopper|||pending_init|",
		"requested|s2||s2|explorer|fork|Review the cranes.||",
		"started|s2|" + id("6") + "|s2|Noether|||pending_init|",
		"requested|s3||s3||fresh|Review the buoys.||",
		"failed|s3||s3||||not_found|not_found",
		"completed|s1|" + id("5") + "|s1||||completed|",
		"canceled|s2|" + id("6") + "|s2||||running|",
	}, got)
	forest, err := fork.Tree(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	node := forest.Node(id("4"))
	if len(node.Down) != 2 || node.Down[0].ID != id("5") || node.Down[0].Kind != fork.KindRun || node.Down[1].ID != id("6") || node.Down[1].Kind != fork.KindFork {
		t.Errorf("below the parent: %+v", node.Down)
	}
}
