package verify_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line/linetest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

// located are damages of the golden session "basic" of nine lines, an append
// each, with all defects: by rule, seq and line.
var located = []struct {
	name  string
	edit  func(lines []string) []string
	want  string
	reads int64
}{
	{"nothing", func(l []string) []string { return l }, "", 9},
	{"a flip", func(l []string) []string { return flip(l, 2) }, "crc 3 line 2", 8},
	{"three flips", func(l []string) []string { return flip(l, 0, 3, 4) }, "crc 0 line 0, crc 4 line 3, crc 5 line 4", 6},
	{"a flip and forged data", func(l []string) []string { return forge(6, "19.90", "99.90")(flip(l, 2)) }, "crc 3 line 2, chain 7 line 6", 8},
	{"forged data behind a flip", func(l []string) []string { return forge(6, "19.90", "99.90")(flip(l, 5)) }, "crc 6 line 5", 8},
	{"a line lost", func(l []string) []string { return slices.Delete(l, 3, 4) }, "seq 4 line 3", 8},
	{"a line lost and a flip", func(l []string) []string { return flip(slices.Delete(l, 3, 4), 5) }, "seq 4 line 3, crc 7 line 5", 7},
	{"lines lost behind a flip", func(l []string) []string { return slices.Delete(flip(l, 2), 3, 6) }, "crc 3 line 2, seq 4 line 3", 5},
	{"a line twice", func(l []string) []string { return slices.Insert(l, 3, l[2]) }, "seq 4 line 3", 10},
	{"all lines twice", func(l []string) []string { return append(l, l[:2]...) }, "seq 10 line 9, seq 10 line 10", 11},
	{"lines change places", func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, "seq 4 line 3, seq 6 line 4", 9},
	{"a newline lost", func(l []string) []string { l[3] = strings.TrimSpace(l[3]); return l }, "line 4 line 3", 9},
	{"something behind a line", func(l []string) []string { l[3] = strings.TrimSpace(l[3]) + "xyz\n"; return l }, "line 4 line 3", 9},
	{"something before a line", func(l []string) []string { l[3] = "xyz" + l[3]; return l }, "line 4 line 3", 9},
	{"NULs in place of lines", func(l []string) []string {
		l[2], l[3] = strings.Repeat("\x00", len(l[2])), strings.Repeat("\x00", len(l[3]))
		return l
	}, "line 3 line 2", 7},
	{"empty lines", func(l []string) []string { return slices.Insert(l, 4, "\n", "\n") }, "line 5 line 4, line 6 line 5", 9},
	{"carriage returns", func(l []string) []string {
		return strings.SplitAfter(strings.ReplaceAll(strings.Join(l, ""), "\n", "\r\n"), "\n")[:9]
	}, "", 9},
	{"forged seqs", func(l []string) []string { return forge(8, `"seq":9`, `"seq":10`)(l) }, "seq 9 line 8", 9},
}

// flip changes a bit in the timestamp of lines.
func flip(lines []string, at ...int) []string {
	for _, i := range at {
		b := []byte(lines[i])
		b[strings.Index(lines[i], `Z","`)-1] ^= 1
		lines[i] = string(b)
	}
	return lines
}

// Verify continues after damage, and reports one defect per damage, at its place.
func TestVerifyLocatesEachDefect(t *testing.T) {
	for _, test := range located {
		t.Run(test.name, func(t *testing.T) {
			dir := copyOfGoldens(t)
			var lines []string
			onLines("basic", func(l []string) []string {
				lines = test.edit(l)
				return lines
			})(t, dir)
			report := verifyAll(t, dir)["basic"]
			if got := describe(lines, report.Defects); got != test.want || report.Events != test.reads {
				t.Errorf("found %q and %d events, want %q and %d: %v", got, report.Events, test.want, test.reads, report.Defects)
			}
		})
	}
}

// describe names defects by rule, seq and line number.
func describe(lines []string, defects []eventlog.Defect) string {
	starts := map[int64]int{}
	at := 0
	for i, line := range lines {
		starts[int64(at)] = i
		at += len(line)
	}
	var names []string
	for _, d := range defects {
		line, ok := starts[d.Offset]
		if !ok || filepath.Base(d.Path) != "basic.jsonl" {
			line = -1
		}
		names = append(names, fmt.Sprintf("%s %d line %d", d.Rule, d.Seq, line))
	}
	return strings.Join(names, ", ")
}

// Lines of another session in a row are one defect.
func TestVerifyOfExchangedSessions(t *testing.T) {
	dir := copyOfGoldens(t)
	testkit.WriteFile(t, filepath.Join(dir, "basic.jsonl"), testkit.ReadFile(t, filepath.Join(dir, "batch.jsonl")))
	report := verifyAll(t, dir)["basic"]
	if len(report.Defects) != 1 || report.Defects[0].Rule != "session" || report.Defects[0].Offset != 0 {
		t.Errorf("found %v", report.Defects)
	}
}

// However much is damaged, the report stays small, and its counts right.
func TestVerifyOfMuchDamage(t *testing.T) {
	dir := copyOfGoldens(t)
	onLines("basic", func(l []string) []string { return slices.Insert(l, 3, slices.Repeat([]string{"garbage\n"}, 5000)...) })(t, dir)
	report := verifyAll(t, dir)["basic"]
	if n := int64(len(report.Defects)) + report.MoreDefects; n != 5000 || len(report.Defects) > 1000 || report.Events != 9 {
		t.Errorf("%d defects, %d more, %d events", len(report.Defects), report.MoreDefects, report.Events)
	}
}

// talked is a conversation in a jsonl store, and its fork.
func talked(t *testing.T) (log *eventlog.Log, dir string) {
	t.Helper()
	dir = t.TempDir()
	store := jsonl.New(dir, jsonl.Options{NoSync: true})
	log = eventlog.Open(suite.OverwritingSalvager{Overwriting: suite.Overwriting{Store: store}})
	t.Cleanup(func() { _ = log.Close() })
	add := func(session string, events ...event.Event) {
		t.Helper()
		for _, e := range events {
			if _, err := log.Append(t.Context(), session, eventlog.Any(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	call := func(id string) event.Event {
		return event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "f", nil)}})
	}
	result := func(id string) event.Event { return event.ToolOutput(id, "f", []byte("done"), false) }
	add("p", event.UserMessage("hello"), call("c1"), call("c2"), result("c1"), event.AssistantMessage("so"), result("c2"))
	point, err := log.Event(t.Context(), "p", 4)
	if err != nil {
		t.Fatal(err)
	}
	add("f", event.New(event.Fork{Parent: "p", Seq: 4, EventID: point.ID, Hash: point.Hash()}), result("c2"),
		event.New(event.HeadMove{To: 3}), result("c1"), result("c2"), event.UserMessage("on"))
	return log, dir
}

// rewritten edits the lines of a session, makes their hashes right again, and returns the
// report of Verify.
func rewritten(t *testing.T, session string, edit func(string) string) verify.Report {
	t.Helper()
	log, dir := talked(t)
	path := filepath.Join(dir, session+".jsonl")
	before := ""
	if session == "f" {
		before = testkit.ReadFile(t, filepath.Join(dir, "p.jsonl"))
	}
	text := testkit.ReadFile(t, path)
	changed := edit(text)
	if changed == text {
		t.Fatalf("nothing changes in %s", text)
	}
	chained := linetest.Rechain([]byte(before + changed))
	testkit.WriteFile(t, path, string(chained[len(before):]))
	report, err := verify.Session(t.Context(), log, session)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func swap(old, fresh string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, fresh) }
}

// lose makes a message of one call a lost event.
func lose(id string) func(string) string {
	message := regexp.MustCompile(`"type":"message_added"(.*"data":)\{"role":"assistant","parts":\[\{"type":"tool_call","call_id":"` + id + `".*`)
	return func(text string) string {
		return message.ReplaceAllString(text, `"type":"lost"$1{"reason":"unreadable"}}`)
	}
}

// Verify checks the rules of conversation that Append enforces, unless the event is
// marked as broken.
func TestVerifyChecksTheConversation(t *testing.T) {
	const result = `"data":{"role":"tool","parts":[{"type":"tool_result","call_id":`
	for _, test := range []struct {
		name, session  string
		edit           func(string) string
		defects, notes string
	}{
		{"nothing", "p", swap(`"hello"`, `"hallo"`), "", ""},
		{"nothing in the fork", "f", swap(`"on"`, `"ah"`), "", ""},
		{"a result of no call", "p", swap(result+`"c1"`, result+`"c3"`), "orphan_result 4", ""},
		{"a result of a call that has one", "p", swap(result+`"c2"`, result+`"c1"`), "orphan_result 6", ""},
		{"the mark of an import", "p", swap(result+`"c1"`, `"metadata":{"broken":["orphan_result"]},`+result+`"c3"`), "", "orphan_result 4"},
		{"a fork that moved back behind a call", "f", swap(`"to":3`, `"to":2`), "orphan_result 9", ""},
		{"a fork that moved back before its calls", "f", swap(`"to":3`, `"to":0`), "orphan_result 8, orphan_result 9", ""},
		{"an unknown role", "p", swap(`"role":"user"`, `"role":"robot"`), "unknown_role 1", ""},
		{"an assistant that says nothing", "p", swap(`[{"type":"text","text":"so"}]`, `[]`), "empty_message 5", ""},
		{"one that is marked", "p", swap(`"data":{"role":"assistant","parts":[{"type":"text","text":"so"}]`,
			`"metadata":{"broken":["empty_message"]},"data":{"role":"assistant","parts":[]`), "", "empty_message 5"},
		{"a call twice in a message", "p", swap(`[{"type":"tool_call","call_id":"c1","name":"f","arguments":{}}]`,
			`[{"type":"tool_call","call_id":"c1","name":"f"},{"type":"tool_call","call_id":"c1","name":"f"}]`), "duplicate_call 2", ""},
		{"a call that was lost", "p", lose("c1"), "", "orphan_result 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := rewritten(t, test.session, test.edit)
			got := []string{rules(report.Defects), rules(report.Notes)}
			if diff := cmp.Diff([]string{test.defects, test.notes}, got); diff != "" {
				t.Errorf("defects and notes (-want +got):\n%s%v", diff, report.Defects)
			}
		})
	}
}

func rules(defects []eventlog.Defect) string {
	var names []string
	for _, d := range defects {
		names = append(names, fmt.Sprintf("%s %d", d.Rule, d.Seq))
	}
	return strings.Join(names, ", ")
}

// Where a parent lost a call, a result in its fork is no defect.
func TestVerifyOfAForkOfALossyParent(t *testing.T) {
	log, dir := talked(t)
	parent, fork := filepath.Join(dir, "p.jsonl"), filepath.Join(dir, "f.jsonl")
	lossy := lose("c2")(testkit.ReadFile(t, parent))
	both := linetest.Rechain([]byte(lossy + testkit.ReadFile(t, fork)))
	lines := bytes.SplitAfter(both, []byte("\n"))
	n := strings.Count(lossy, "\n")
	testkit.WriteFile(t, parent, string(bytes.Join(lines[:n], nil)))
	testkit.WriteFile(t, fork, string(bytes.Join(lines[n:], nil)))
	report, err := verify.Session(t.Context(), log, "f")
	if err != nil || rules(report.Defects) != "" || rules(report.Notes) != "orphan_result 6, orphan_result 9" {
		t.Errorf("%v, %v, %v", report.Defects, report.Notes, err)
	}
}
