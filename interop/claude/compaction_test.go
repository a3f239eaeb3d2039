package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/projection"
)

// boundary is a compact_boundary line.
func boundary(session, uuid, logical, more string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","sessionId":%q,"cwd":"/","uuid":%q,"parentUuid":null,"logicalParentUuid":%q,`+
		`"compactMetadata":{"trigger":"auto","preTokens":90%s}}`+"\n", session, uuid, logical, more)
}

// summaryLine is a user line with a summary.
func summaryLine(session, uuid, parent, text string) string {
	return strings.Replace(userPrompt(session, uuid, parent, text), `"type":"user"`, `"type":"user","isCompactSummary":true`, 1)
}

func preservedSegment(head, tail string) string {
	return fmt.Sprintf(`,"preservedSegment":{"headUuid":%q,"anchorUuid":"k","tailUuid":%q}`, head, tail)
}

// history returns an outline of the effective history.
func history(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	entries := importtest.History(t, log, session)
	for _, e := range entries {
		lines = append(lines, importtest.MessageOutline(&e.Message))
	}
	raw, err := anthropic.Messages(entries)
	if err == nil {
		err = modelapi.CheckMessages(raw)
	}
	if err != nil {
		t.Errorf("as a request: %v", err)
	}
	return lines
}

var threePrompts = userPrompt("s", "u1", "", "One") + userPrompt("s", "u2", "u1", "Two") + userPrompt("s", "u3", "u2", "Three")

func TestCompactionHistory(t *testing.T) {
	for _, test := range []struct {
		name, text string
		types      []string // from the fifth event on
		model      []string
	}{
		{
			"with a summary", threePrompts + boundary("s", "k", "u3", "") + summaryLine("s", "s1", "k", "Summary of it") + userPrompt("s", "u4", "s1", "Four"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…"},
			[]string{"user Summary…", "user Four…"},
		},
		{
			"with a summary and kept lines",
			threePrompts + boundary("s", "k", "u3", preservedSegment("u2", "u3")) + summaryLine("s", "s1", "k", "Summary of it") + userPrompt("s", "u4", "u3", "Four"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…"},
			[]string{"user Summary…", "user Two…", "user Three…", "user Four…"},
		},
		{
			"without a summary, with kept lines", threePrompts + boundary("s", "k", "u3", preservedSegment("u2", "u3")) + userPrompt("s", "u4", "u3", "Four"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…"},
			[]string{"user Two…", "user Three…", "user Four…"},
		},
		{
			"without a later line", threePrompts + boundary("s", "k", "u3", ""),
			[]string{"claude:system:compact_boundary"},
			[]string{"user One…", "user Two…", "user Three…"},
		},
		{
			"a second compaction", threePrompts + boundary("s", "k", "u3", "") + summaryLine("s", "s1", "k", "Summary of it") + userPrompt("s", "u4", "s1", "Four") +
				boundary("s", "l", "u4", "") + summaryLine("s", "s2", "l", "Another one") + userPrompt("s", "u5", "s2", "Five"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…", "claude:system:compact_boundary", "compaction_triggered", "user Five…"},
			[]string{"user Another…", "user Five…"},
		},
		{
			"a rewind to before it", threePrompts + boundary("s", "k", "u3", "") + summaryLine("s", "s1", "k", "Summary of it") + userPrompt("s", "u4", "s1", "Four") + userPrompt("s", "u5", "u3", "Five"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…", "head_moved to 4", "user Five…"},
			[]string{"user One…", "user Two…", "user Three…", "user Five…"},
		},
		{
			"a rewind to after it", threePrompts + boundary("s", "k", "u3", "") + summaryLine("s", "s1", "k", "Summary of it") + userPrompt("s", "u4", "s1", "Four") + userPrompt("s", "u5", "s1", "Five"),
			[]string{"claude:system:compact_boundary", "compaction_triggered", "user Four…", "head_moved to 6", "user Five…"},
			[]string{"user Summary…", "user Five…"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole, grown := importtest.NewLog(t), importtest.NewLog(t)
			if _, err := loadText(t, whole, "f", test.text); err != nil {
				t.Fatal(err)
			}
			for _, cut := range importtest.Cuts(test.text) {
				if _, err := loadText(t, grown, "f", test.text[:cut]); err != nil {
					t.Fatal(err)
				}
			}
			importtest.Same(t, "line by line", importtest.Contents(t, whole), importtest.Contents(t, grown))
			importtest.Same(t, "events", test.types, importtest.Outlines(t, importtest.Events(t, whole, "s"))[4:])
			importtest.Same(t, "history", test.model, history(t, whole, "s"))
		})
	}
}

func TestCompactionEntries(t *testing.T) {
	log := importtest.NewLog(t)
	text := threePrompts + boundary("s", "k", "u3", preservedSegment("u2", "u3")) + summaryLine("s", "s1", "k", "Summary of it")
	if _, err := loadText(t, log, "f", text); err != nil {
		t.Fatal(err)
	}
	c, _, err := event.Decode[event.Compaction](&importtest.Events(t, log, "s")[5])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "compaction", event.Compaction{
		Strategy: "summary", Trigger: "auto", Covers: event.Stretch{From: 1, To: 5}, TokensBefore: 90, Summary: "Summary of it", Extra: c.Extra,
		Entries: []event.CompactionEntry{
			{Message: &event.Message{Role: event.User, Parts: []event.Part{event.Text("Summary of it")}}}, {Seq: 3}, {Seq: 4},
		},
	}, c)
}

func TestClearedResults(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, sample("-home-ada-tidepool", compacted))
	all := importtest.Events(t, log, compacted)
	cleared := 0
	for _, e := range importtest.History(t, log, compacted, projection.Options{At: all[10].Seq}) {
		for _, r := range e.Message.ToolResults() {
			if gone := r.CallID == "toolu_c4d90702"; gone != (e.Made == "cleared") {
				t.Errorf("result of %s is %q", r.CallID, e.Made)
			} else if gone {
				cleared++
			}
		}
	}
	if cleared != 1 {
		t.Errorf("%d results were cleared, not 1", cleared)
	}
}
