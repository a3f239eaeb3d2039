package pi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/store/storetest"
)

// anyLine is a line of a file: an entry, or now and then the header of a session.
func anyLine(t *rapid.T, n int) string {
	if rapid.IntRange(0, 9).Draw(t, "header?") < 9 {
		return anyEntry(t, n)
	}
	return rapid.SampledFrom([]string{
		`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:02Z","cwd":"/"}`,
		`{"type":"session","id":"t","timestamp":"2026-01-01T00:00:02Z","cwd":"/","parentSession":"/x/1_s.jsonl"}`,
	}).Draw(t, "header") + "\n"
}

// anyEntry is an entry of any kind, with any parent or none.
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
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
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
	default:
		add("type", `"label"`)
	}
	return "{" + strings.Join(members, ",") + "}\n"
}

// anyFile is a file that begins with a header.
func anyFile(t *rapid.T, header string) []string {
	lines := []string{header + "\n"}
	for n := range rapid.IntRange(1, 30).Draw(t, "lines") {
		lines = append(lines, anyLine(t, n))
	}
	return lines
}

// Law: whatever the lines of a file are, importing it while it grows gives the
// same log as importing it whole, and importing it again writes nothing.
func TestAnyFileThatGrowsGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := anyFile(r, header)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(lines)), 0, 4).Draw(r, "cuts")
		law(t, r, nil, lines, cuts)
	})
}

// Law: the same holds for a copy of a session, which keeps some first lines of it,
// leaves out labels, and goes on in any way.
func TestAnyCopyThatGrowsGivesTheSameLog(t *testing.T) {
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
		law(t, r, parent, lines, cuts)
	})
}

// law compares a file imported whole with the same imported in parts.
func law(t *testing.T, r *rapid.T, before, lines []string, cuts []int) {
	whole, grown := imported(t, r, before, lines, nil), imported(t, r, before, lines, cuts)
	if diff := cmp.Diff(whole, grown); diff != "" {
		r.Fatalf("whole (-) and grown (+):\n%s", diff)
	}
}

// imported imports what stood before, then the first lines up to each cut, and
// then all of them twice.
func imported(t *testing.T, r *rapid.T, before, lines []string, cuts []int) []content {
	log := eventlog.Open(storetest.NewMemory())
	defer log.Close()
	put := func(lines []string) int {
		got, err := pi.Format{}.Import(t.Context(), log, source("f", strings.Join(lines, "")))
		if err != nil || len(got.Refused) > 0 {
			r.Fatalf("import of %d lines: %+v, %v", len(lines), got, err)
		}
		if sum := got.Imported + got.Raw + got.Present + got.Held; sum != got.Records {
			r.Fatalf("%d records in %+v", sum, got)
		}
		return got.Events
	}
	put(before)
	for _, cut := range append(cuts, len(lines)) {
		put(lines[:cut])
	}
	all := withoutHashes(contents(t, log))
	if n := put(lines); n > 0 {
		r.Fatalf("import again wrote %d events", n)
	}
	return all
}
