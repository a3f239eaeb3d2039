package codex_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func TestRolledBack(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "rolled-back")
	importtest.Same(t, "active path", []string{
		"session_started Name a sea.",
		"turn_started",
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"session_updated",
		"head_moved to 5",
		"head_moved to 37",
	}, outline(t, log, id("2")))
	var tos []int64
	var indexes []int
	for e, err := range log.Read(t.Context(), id("2"), eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok, err := event.Decode[event.HeadMove](&e); ok && err == nil {
			tos = append(tos, m.To)
		}
		if turn, ok, err := event.Decode[event.TurnStart](&e); ok && err == nil {
			indexes = append(indexes, turn.Index)
		}
	}
	importtest.Same(t, "moves", []int64{11, 5, 37}, tos)
	importtest.Same(t, "indexes of turns", []int{0, 1, 2, 1, 1}, indexes)
	importtest.Same(t, "usage", event.Usage{InputTokens: 1490, OutputTokens: 25}, usage(t, log, id("2")))
}

// history returns an outline of the effective history.
func history(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range importtest.History(t, log, session) {
		lines = append(lines, drawMessage(&e.Message))
	}
	return lines
}

func TestCompacted(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "compacted")
	for _, e := range path(t, log, id("3")) {
		c, ok, err := event.Decode[event.Compaction](&e)
		if !ok {
			continue
		}
		var refs []int64
		for _, entry := range c.Entries {
			refs = append(refs, entry.Seq)
		}
		importtest.Same(t, "references", []int64{6, 12, 0, 17, 0}, refs)
		if err != nil || !c.Replace || c.Covers.To != e.Seq-1 || c.Entries[2].Message.Role != event.Developer || string(c.Extra) != `{"window_number":1}` {
			t.Errorf("compaction is %+v, %v", c, err)
		}
	}
	importtest.Same(t, "history", []string{
		"user Count the boats.",
		"assistant Twelve.",
		"developer <permissions instructions>Ask first, always.</permissions instructions>",
		"user Count the oars.",
		"assistant opaque",
		"assistant Forty oars, twelve boats.",
		"user Thanks.",
		"assistant You are welcome.",
	}, history(t, log, id("3")))
}

func TestSummaryOnly(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "summarised")
	importtest.Same(t, "history", []string{
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"user Paint the hull.",
		"user Blue.",
		"user The hull is to be blue.",
		"assistant Painted.",
	}, history(t, log, id("a")))
}
