package codex_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
)

// parentOf returns the session that a session was forked from; ok is false if it is no fork.
func parentOf(t *testing.T, log *eventlog.Log, session string) (a eventlog.Ancestor, ok bool, err error) {
	for a, err := range log.Ancestors(t.Context(), session) {
		return a, err == nil, err
	}
	return a, false, nil
}

// ownOfFork is the path of the fork after the copies.
var ownOfFork = []string{
	"session_updated", "turn_started", "user And the lighthouse?", "session_updated And the lighthouse?",
	"assistant It is dark.", "step 0: 100+700 in, 9 out", "turn completed",
}

// ownOfAgent is the path of the forked sub-agent after the copies.
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
	parent := outline(t, log, id("4"))
	for n, want := range map[string]struct {
		point int64
		label string
		own   []string
	}{
		"6": {19, "Noether", ownOfAgent},
		"7": {38, "", ownOfFork},
	} {
		p, ok, err := parentOf(t, log, id(n))
		if err != nil || !ok || p.Session != id("4") || p.Through.Seq != want.point || p.Fork.Label != want.label {
			t.Fatalf("%s is forked from %+v, %v, %v", n, p, ok, err)
		}
		got := outline(t, log, id(n))
		at := len(got) - len(want.own) - 1
		importtest.Same(t, "shared events", parent[:at], got[:at])
		importtest.Same(t, "own events", append([]string{"session_forked"}, want.own...), got[at:])
	}
	importtest.Same(t, "spent by the sub-agent", event.Usage{InputTokens: 150, CacheReadTokens: 400, OutputTokens: 12, ReasoningTokens: 2}, usage(t, log, id("6")))
	if got := sessionInfo(t, log, id("6")); got.Labels["agent_nickname"] != "Noether" || got.Labels["model"] != "gpt-5.4-mini" || got.Source.SessionID != id("6") {
		t.Errorf("sub-agent is %+v", got)
	}
	stats, err := stats.Load(t.Context(), log, id("7"))
	if err != nil || stats.BySource["codex"].Events != 11 {
		t.Errorf("stats by source: %+v, %v", stats.BySource, err)
	}
	again := load(t, log, "agent-forked", "fork", "parent")
	if total := again.Total(); total.Events != 0 || total.Present != total.Records {
		t.Errorf("second import: %+v", total)
	}
}

// Forks without their parent own the records that they copied. The sums are the ones of an
// import in which the parent is first. The sub-agent has an answer without its tokens, which are
// in the next record of its parent.
func TestForksOfAMissingParent(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "agent-forked", "fork")
	if got := sessionInfo(t, log, id("6")); got.Title != "Review the cranes." || got.Parent.SessionID != id("4") {
		t.Errorf("sub-agent is %+v", got)
	}
	inherited := func(n string) (count int) {
		for _, e := range importtest.Events(t, log, id(n)) {
			if e.Inherited() {
				count++
			}
		}
		return count
	}
	if n := inherited("6"); n > 0 {
		t.Errorf("%d events of the sub-agent are inherited", n)
	}
	if n := inherited("7"); n == 0 {
		t.Error("the fork owns the records that the sub-agent copied before")
	}
	load(t, log, "parent")
	if n := inherited("4"); n < 12 {
		t.Errorf("%d events of the parent are inherited", n)
	}
	whole := importtest.NewLog(t)
	load(t, whole, "parent", "agent-forked", "fork")
	sum := func(log *eventlog.Log) (all stats.Stats) {
		for _, n := range []string{"4", "6", "7"} {
			s, err := stats.Load(t.Context(), log, id(n))
			if err != nil {
				t.Fatal(err)
			}
			all.Add(s)
		}
		return all
	}
	got, want := sum(log).Total, sum(whole).Total
	importtest.Same(t, "spent", want.Usage, got.Usage)
	if got.Responses-got.Unknown != want.Responses || got.Unknown != 1 || got.Calls != want.Calls || got.Turns != want.Turns || got.Messages != want.Messages {
		t.Errorf("the sums are %+v, want %+v", got, want)
	}
	if total := load(t, log, "agent-forked", "fork").Rows; total[0].Events != 0 || total[1].Events != 0 {
		t.Errorf("import when the parent is there: %+v", total)
	}
	forest, err := fork.Tree(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	if n := forest.Node(id("7")); n.Kind != fork.KindCopy || n.Up == nil || n.Up.ID != id("4") {
		t.Errorf("the fork is a %s of %s", n.Kind, n.Parent)
	}
	if n := forest.Node(id("6")); n.Kind != fork.KindRun || n.Up == nil || n.Up.ID != id("4") {
		t.Errorf("the sub-agent is a %s of %s", n.Kind, n.Parent)
	}
	importtest.Verify(t, log)
}

func TestForkWithoutLinesOfItsOwnIsHeld(t *testing.T) {
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

func TestCopiesOfAnotherConversationMakeNoFork(t *testing.T) {
	log := importtest.NewLog(t)
	parent := strings.Replace(readFixture(t, "parent"), "Ask first.", "Never ask.", 1)
	if _, err := loadText(t, log, parent); err != nil {
		t.Fatal(err)
	}
	load(t, log, "fork")
	if _, ok, err := parentOf(t, log, id("7")); ok || err != nil {
		t.Errorf("the session is a fork: %v, %v", ok, err)
	}
	importtest.Same(t, "spent", event.Usage{InputTokens: 100, CacheReadTokens: 700, OutputTokens: 9}, usage(t, log, id("7")))
}

func TestMissingMessageEndsTheCopies(t *testing.T) {
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
	p, ok, err := parentOf(t, log, id("7"))
	if err != nil || !ok || p.Through.Seq != 8 {
		t.Errorf("forked from %+v, %v, %v", p, ok, err)
	}
	if got := outline(t, log, id("7")); strings.Contains(strings.Join(got, "\n"), "I ask two") {
		t.Errorf("the fork has events that its file lacks:\n%s", strings.Join(got, "\n"))
	}
}

// A rollback is in one append with the event after it, so the parent cannot be forked
// between the two. The fork has a rollback of its own.
func TestForkAfterARollback(t *testing.T) {
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
	p, ok, err := parentOf(t, log, "s")
	if err != nil || !ok || p.Through.Seq != 27 {
		t.Errorf("forked from %+v, %v, %v", p, ok, err)
	}
	importtest.Same(t, "events after the first turn", []string{
		"turn completed", "head_moved to 11", "user Name a bay.", "session_updated Name a bay.",
	}, outline(t, log, "s")[8:])
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
	var lineage []eventlog.Ancestor
	for a, err := range log.Ancestors(t.Context(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		lineage = append(lineage, a)
	}
	if len(lineage) != 2 || lineage[0].Session != id("7") || lineage[0].Through.Seq != 49 || lineage[1].Session != id("4") || lineage[1].Through.Seq != 38 {
		t.Errorf("lineage is %+v", lineage)
	}
	importtest.Same(t, "own events", []string{"session_forked", "session_updated", "turn_started", "user And the moon?", "session_updated And the moon?"},
		outline(t, log, "s")[len(outline(t, log, id("7"))):])
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
		t.Errorf("children of the parent: %+v", node.Down)
	}
}
