package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
)

// spoken is a line of the user or the model.
func spoken(kind, id, parent, at, text string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","timestamp":"2026-03-%s:00Z","message":{"role":%q,"id":"m-%s","content":%q}}`,
		kind, id, parent, at, kind, id, text)
}

func lastPrompt(leaf string) string {
	return fmt.Sprintf(`{"type":"last-prompt","lastPrompt":"x","leafUuid":%q,"sessionId":"s"}`, leaf)
}

// The night between two prompts belongs to no turn.
func TestANightBetweenTwoTurns(t *testing.T) {
	lines := []string{
		spoken("user", "u1", "null", "01T10:00", "Hello"), spoken("assistant", "a1", `"u1"`, "01T10:01", "Hi."),
		`{"type":"system","subtype":"turn_duration","durationMs":51000,"parentUuid":"a1","uuid":"d1","sessionId":"s","timestamp":"2026-03-01T10:01:00Z"}`,
		`{"type":"cost-state","sessionId":"s","totalCostUSD":0.25}`,
		`{"type":"file-history-snapshot","messageId":"u2","snapshot":{"timestamp":"2026-03-02T10:00:00Z"}}`,
		spoken("user", "u2", `"d1"`, "02T10:00", "Next day"), spoken("assistant", "a2", `"u2"`, "02T10:02", "Yes."),
		`{"type":"cost-state","sessionId":"s","totalCostUSD":0.75}`,
		`{"type":"custom-title","customTitle":"Days","sessionId":"s","timestamp":"2026-03-03T10:00:00Z"}`,
	}
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "s.jsonl", strings.Join(lines, "\n"))
	got, err := stats.Load(t.Context(), log, "s")
	if x := got.Total; err != nil || x.WorkMS != 51_000+120_000 || x.WaitMS != 0 || x.Reported.USD() != 0.75 {
		t.Errorf("stats: %+v, %v", got.Total, err)
	}
	if first := got.ByDay["2026-03-01"]; first.WorkMS != 51_000 {
		t.Errorf("the first day: %+v", first)
	}
	run, err := runlog.Load(t.Context(), log, "s", runlog.Options{})
	if err != nil || len(run.Turns) != 2 || run.Totals.Reported.USD() != 0.75 {
		t.Fatalf("run: %+v, %v", run, err)
	}
	if a, b := run.Turns[0], run.Turns[1]; a.TookMS != 51_000 || a.Ended.Sub(a.Started).Minutes() != 1 || b.TookMS != 0 || b.Ended.Sub(b.Started).Minutes() != 2 {
		t.Errorf("turns: %+v, %+v", a, b)
	}
}

// A session that was rewound, and left without a new prompt, ends where the user went.
func TestALastPromptNamesTheLeaf(t *testing.T) {
	talk := []string{
		spoken("user", "u1", "null", "01T10:00", "One"), spoken("assistant", "a1", `"u1"`, "01T10:01", "Two"), lastPrompt("a1"),
		spoken("user", "u2", `"a1"`, "01T10:02", "Three"), spoken("assistant", "a2", `"u2"`, "01T10:03", "Four"), lastPrompt("a2"),
	}
	back := append(talk[:6:6], lastPrompt("a1"))
	for _, test := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"the newest line", talk, []string{"One", "Two", "Three", "Four"}},
		{"an earlier line", back, []string{"One", "Two"}},
		{"a prompt after it", append(back[:7:7], spoken("user", "u3", `"a1"`, "01T10:04", "Five")), []string{"One", "Two", "Five"}},
		{"the other branch again", append(back[:7:7], lastPrompt("a2")), []string{"One", "Two", "Three", "Four"}},
		{"an unknown line", append(talk[:6:6], lastPrompt("x")), []string{"One", "Two", "Three", "Four"}},
	} {
		log := importtest.NewLog(t)
		importtest.Load(t, log, claude.Format{}, "s.jsonl", strings.Join(test.lines, "\n"))
		var said []string
		for _, e := range importtest.History(t, log, "s") {
			said = append(said, e.Message.Text())
		}
		importtest.Same(t, test.name, test.want, said)
		for n := range test.lines {
			importtest.Grows(t, claude.Format{}, "s.jsonl", strings.Join(test.lines[:n], "\n")+"\n", strings.Join(test.lines, "\n")+"\n")
		}
	}
}

func TestMalformedMeasures(t *testing.T) {
	lines := []string{spoken("user", "u1", "null", "01T10:00", "One"), spoken("assistant", "a1", `"u1"`, "01T10:01", "Two")}
	for _, v := range []string{`"1"`, "-1", "1e99", "null", "{}"} {
		lines = append(lines, `{"type":"cost-state","sessionId":"s","totalCostUSD":`+v+`}`,
			`{"type":"system","subtype":"turn_duration","durationMs":`+v+`,"parentUuid":"a1","sessionId":"s"}`)
	}
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "s.jsonl", strings.Join(lines, "\n"))
	if n := len(importtest.Events(t, log, "s")); n != 13 {
		t.Errorf("%d events", n)
	}
	got, err := stats.Load(t.Context(), log, "s")
	if x := got.Total; err != nil || x.WorkMS != 60_000 || x.Reported != 0 {
		t.Errorf("stats: %+v, %v", x, err)
	}
}
