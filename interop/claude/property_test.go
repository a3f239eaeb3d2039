package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/store/storetest"
)

// anyLine is a line of a file: any kind, with any parent, of any session.
func anyLine(t *rapid.T, n int) string {
	id := func(name string) string { return fmt.Sprintf("u%d", rapid.IntRange(0, n).Draw(t, name)) }
	members := []string{fmt.Sprintf(`"uuid":%q`, rapid.SampledFrom([]string{fmt.Sprintf("u%d", n), id("uuid")}).Draw(t, "own"))}
	add := func(name, value string) { members = append(members, fmt.Sprintf(`%q:%s`, name, value)) }
	if rapid.Bool().Draw(t, "parent?") {
		add("parentUuid", `"`+id("parent")+`"`)
	}
	if session := rapid.SampledFrom([]string{"s", "s", "s", "t", ""}).Draw(t, "session"); session != "" {
		add("sessionId", `"`+session+`"`)
	}
	if rapid.Bool().Draw(t, "time?") {
		add("timestamp", fmt.Sprintf(`"2026-01-01T00:00:%02dZ"`, rapid.IntRange(0, 59).Draw(t, "time")))
	}
	if rapid.IntRange(0, 5).Draw(t, "side") == 0 {
		add("isSidechain", "true")
	}
	if rapid.IntRange(0, 9).Draw(t, "retracts") == 0 {
		add("supersedesUuids", `["`+id("retracted")+`"]`)
	}
	if rapid.IntRange(0, 3).Draw(t, "meta") == 0 {
		add("isMeta", "true")
	}
	if rapid.Bool().Draw(t, "folder?") {
		add("cwd", `"/srv"`)
	}
	call := rapid.IntRange(0, 3).Draw(t, "call")
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0, 1:
		add("type", `"user"`)
		add("message", `{"role":"user","content":"Count."}`)
	case 2, 3:
		add("type", `"assistant"`)
		add("message", fmt.Sprintf(`{"role":"assistant","id":"m%d","content":[{"type":"tool_use","id":"c%d","name":"Task","input":{"prompt":"Count."}}]}`,
			rapid.IntRange(0, 9).Draw(t, "group"), call))
	case 4:
		add("type", `"user"`)
		add("message", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"4"}]}`, call))
	case 5:
		add("type", `"system"`)
		add("subtype", `"compact_boundary"`)
		add("compactMetadata", fmt.Sprintf(`{"preservedSegment":{"headUuid":%q,"tailUuid":%q}}`, id("head"), id("tail")))
	case 6:
		add("type", `"summary"`)
		add("summary", `"Counting"`)
	case 7:
		add("type", `"user"`)
		add("message", `{"role":"user","content":"<local-command-stdout>4</local-command-stdout>"}`)
	default:
		add("type", `"progress"`)
	}
	return "{" + strings.Join(members, ",") + "}\n"
}

// Law: whatever the lines of a file are, importing it while it grows gives the
// same log as importing it whole, and importing it again writes nothing.
func TestAnyFileThatGrowsGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var lines []string
		for n := range rapid.IntRange(1, 30).Draw(r, "lines") {
			lines = append(lines, anyLine(r, n))
		}
		whole, grown := imported(t, r, lines, nil), imported(t, r, lines, rapid.SliceOfN(rapid.IntRange(0, len(lines)), 0, 4).Draw(r, "cuts"))
		if diff := cmp.Diff(whole, grown); diff != "" {
			r.Fatalf("whole (-) and grown (+):\n%s", diff)
		}
	})
}

// imported imports the first lines up to each cut, and then all of them twice.
func imported(t *testing.T, r *rapid.T, lines []string, cuts []int) []content {
	log := eventlog.Open(storetest.NewMemory())
	defer log.Close()
	for _, cut := range append(cuts, len(lines), len(lines)) {
		got, err := claude.Format{}.Import(t.Context(), log, source("f", strings.Join(lines[:cut], "")))
		if err != nil || len(got.Refused) > 0 {
			r.Fatalf("import of %d lines: %+v, %v", cut, got, err)
		}
	}
	all := contents(t, log)
	if got, err := (claude.Format{}).Import(t.Context(), log, source("f", strings.Join(lines, ""))); err != nil || got.Events > 0 {
		r.Fatalf("import again: %+v, %v", got, err)
	}
	return all
}
