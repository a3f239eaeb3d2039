package pi_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

// anyLine is an entry or the header of a session.
func anyLine(t *rapid.T, n int) string {
	if rapid.IntRange(0, 9).Draw(t, "header?") < 9 {
		return anyEntry(t, n)
	}
	return rapid.SampledFrom([]string{
		`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:02Z","cwd":"/"}`,
		`{"type":"session","id":"t","timestamp":"2026-01-01T00:00:02Z","cwd":"/","parentSession":"/x/1_s.jsonl"}`,
	}).Draw(t, "header") + "\n"
}

// anyEntry is an entry of any type, with any parent or without one.
func anyEntry(t *rapid.T, n int) string {
	id := func(name string) string { return fmt.Sprintf("e%d", rapid.IntRange(0, n).Draw(t, name)) }
	var members []string
	add := func(name, value string) { members = append(members, fmt.Sprintf(`%q:%s`, name, value)) }
	if rapid.IntRange(0, 9).Draw(t, "id?") > 0 {
		add("id", `"`+rapid.SampledFrom([]string{fmt.Sprintf("e%d", n), id("id")}).Draw(t, "own")+`"`)
	}
	switch rapid.IntRange(0, 5).Draw(t, "parent?") {
	case 0:
		add("parentId", "null")
	case 1, 2, 3:
		add("parentId", `"`+id("parent")+`"`)
	}
	if rapid.Bool().Draw(t, "time?") {
		add("timestamp", fmt.Sprintf(`"2026-01-01T00:00:%02dZ"`, rapid.IntRange(0, 3).Draw(t, "time")))
	}
	call := rapid.IntRange(0, 3).Draw(t, "call")
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0, 1:
		add("type", `"message"`)
		add("message", `{"role":"user","content":"Count."}`)
	case 2, 3:
		add("type", `"message"`)
		add("message", fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{}}],"usage":{"cost":{"total":0.5}}}`, call))
	case 4:
		add("type", `"message"`)
		add("message", fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","content":"4"}`, call))
	case 5:
		add("type", `"compaction"`)
		add("summary", `"Counting."`)
		if rapid.Bool().Draw(t, "index?") {
			add("firstKeptEntryIndex", fmt.Sprint(rapid.IntRange(0, n).Draw(t, "index")))
		} else {
			add("firstKeptEntryId", `"`+id("kept")+`"`)
		}
	case 6:
		add("type", `"session_info"`)
		add("name", `"Counting"`)
	case 7:
		add("type", `"branch_summary"`)
		add("summary", `"Five was left out."`)
	case 8:
		add("type", `"message"`)
		add("message", `{"role":"assistant","content":[],"stopReason":"aborted"}`)
	case 9:
		add("type", `"compaction"`)
		add("summary", `"Counting."`)
		add("retainedTail", `[{"role":"user","content":"Count."}]`)
		add("usage", `{"input":3,"output":1,"cost":{"total":0.25}}`)
	case 10:
		add("type", `"context_edit"`)
		add("targetId", `"`+id("target")+`"`)
		add("replacement", rapid.SampledFrom([]string{`null`, `{"content":"Cut."}`, `7`}).Draw(t, "replacement"))
	case 11:
		add("type", `"usage"`)
		add("usage", `{"input":5,"output":0,"cost":{"total":0.125}}`)
	default:
		add("type", `"label"`)
	}
	return "{" + strings.Join(members, ",") + "}\n"
}

// anyFile is a file that begins with the header.
func anyFile(t *rapid.T, header string) []string {
	lines := []string{header + "\n"}
	for n := range rapid.IntRange(1, 30).Draw(t, "lines") {
		lines = append(lines, anyLine(t, n))
	}
	return lines
}

// Law: the import of a growing file gives the same log as the import of the whole file,
// and a second import writes nothing.
func TestAnyGrowingFileGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := anyFile(r, header)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(lines)), 0, 4).Draw(r, "cuts")
		importtest.Lines{Format: pi.Format{}}.Grows(r, lines, cuts)
	})
}

// Law: the same holds for a copy of a session. It has the first lines of the session
// without labels, and any lines after them.
func TestAnyGrowingCopyGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parent := []string{header + "\n"}
		for n := range rapid.IntRange(1, 12).Draw(r, "lines") {
			parent = append(parent, anyEntry(r, n))
		}
		lines := []string{`{"type":"session","id":"copy","timestamp":"2026-01-01T00:00:02Z","cwd":"/","branchedFrom":"/x/1_s.jsonl"}` + "\n"}
		for _, l := range parent[1:rapid.IntRange(1, len(parent)).Draw(r, "copied")] {
			if !strings.Contains(l, `"type":"label"`) {
				lines = append(lines, l)
			}
		}
		for n := range rapid.IntRange(0, 5).Draw(r, "own") {
			lines = append(lines, anyEntry(r, n+len(lines)))
		}
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(lines)), 0, 4).Draw(r, "cuts")
		importtest.Lines{Format: pi.Format{}, Before: strings.Join(parent, "")}.Grows(r, lines, cuts)
	})
}
