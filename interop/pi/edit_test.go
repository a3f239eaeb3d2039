package pi_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/runlog/stats"
)

// said are the messages that the model sees.
func said(t *testing.T, lines ...string) (all []string) {
	t.Helper()
	log := importtest.NewLog(t)
	importLines(t, log, lines...)
	for _, m := range historyOf(t, log, "s") {
		text := m.Text()
		for _, p := range m.ToolResults() {
			text += p.CallID + ": " + p.Content[0].Text
		}
		all = append(all, string(m.Role)+" "+text)
	}
	return all
}

const (
	toolCall   = `"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}],"usage":{"input":4,"output":2,"reasoning":1,"cost":{"total":0.5}}`
	toolResult = `"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"A long text."}],"isError":true,"usage":{"input":2,"output":1,"cost":{"total":0.25}}`
)

func edited(id, parent, target, replacement string) string {
	return line(id, parent, `"type":"context_edit","targetId":"`+target+`","replacement":`+replacement)
}

func TestEditsOfTheContext(t *testing.T) {
	talk := []string{header, user("a", "", "Read."), entry("b", "a", toolCall), entry("c", "b", toolResult), user("d", "c", "Never mind.")}
	importtest.Same(t, "history", []string{"user Read.", "assistant ", "tool c: Cut.", "user Thanks."},
		said(t, append(talk, edited("e", "d", "c", `{"content":"Cut."}`), edited("f", "e", "d", "null"), user("g", "f", "Thanks."))...))
	importtest.Same(t, "an edit on another branch", []string{"user Read.", "assistant ", "tool c: A long text.", "user Never mind.", "user Thanks."},
		said(t, append(talk, edited("e", "d", "c", `{"content":"Cut."}`), user("g", "d", "Thanks."))...))
	importtest.Same(t, "an edit in a kept message", []string{"user A summary.", "assistant ", "tool c: Cut."},
		said(t, append(talk[:4:4], edited("e", "c", "c", `{"content":"Cut."}`), line("f", "e", `"type":"compaction","summary":"A summary.","firstKeptEntryId":"b"`))...))
	importtest.Same(t, "an edit before the kept messages", []string{"user A summary.", "user Never mind."},
		said(t, append(talk, edited("e", "d", "a", `{"content":"Cut."}`), line("f", "e", `"type":"compaction","summary":"A summary.","firstKeptEntryId":"d"`))...))
}

func TestAnEditOfAnUnknownRecordIsRaw(t *testing.T) {
	log := importtest.NewLog(t)
	if got := importLines(t, log, header, user("a", "", "One"), edited("b", "a", "x", "null"), edited("c", "b", "a", "7")); got.Raw != 2 {
		t.Errorf("import: %+v", got)
	}
}

func TestACompactionHoldsItsMessages(t *testing.T) {
	tail := `[{"role":"user","content":"Read again."},{` + toolCall + `},{` + toolResult + `}]`
	importtest.Same(t, "history", []string{"user A summary.", "user Read again.", "assistant ", "tool c: A long text.", "user Thanks."},
		said(t, header, user("a", "", "Read."), line("b", "a", `"type":"compaction","summary":"A summary.","firstKeptEntryId":"a","retainedTail":`+tail), user("c", "b", "Thanks.")))
}

func TestACompactionDoesNotRepeatErasedMessages(t *testing.T) {
	log := importtest.NewLog(t)
	text := strings.Join([]string{header, user("a", "", "Sesame"), user("b", "a", "Thanks."), ""}, "\n")
	importtest.Load(t, log, pi.Format{}, "f", text)
	if n := importtest.Redact(t, log, func(e *event.Event) bool { return e.Seq <= 2 }); n != 2 {
		t.Fatalf("%d events redacted", n)
	}
	text += line("c", "b", `"type":"compaction","summary":"A summary.","retainedTail":[{"role":"user","content":"Sesame"}]`) + "\n"
	if got := importtest.Text(t, log, pi.Format{}, "f", text); got.Events != 0 {
		t.Errorf("import: %+v", got)
	}
	if importtest.Says(importtest.Remains(t, log), "Sesame") {
		t.Error("the message is back")
	}
}

// Requests that are no messages cost money.
func TestUsageWithoutAMessage(t *testing.T) {
	log := importtest.NewLog(t)
	usage := `{"input":8,"output":2,"cacheRead":1,"cost":{"total":1}}`
	importLines(t, log, header, user("a", "", "Read."), entry("b", "a", toolCall), entry("c", "b", toolResult),
		line("d", "c", `"type":"usage","kind":"cache_warm","provider":"anthropic","model":"m","usage":`+usage),
		line("e", "d", `"type":"compaction","summary":"A summary.","firstKeptEntryId":"c","usage":`+usage),
		line("f", "e", `"type":"branch_summary","summary":"Another.","fromId":"c","usage":`+usage))
	got, err := stats.Load(t.Context(), log, "s")
	if x := got.Total; err != nil || x.Usage.InputTokens != 30 || x.Usage.OutputTokens != 9 || x.Usage.CacheReadTokens != 3 || x.Usage.ReasoningTokens != 1 ||
		x.Cost.USD() != 3.75 || x.Responses != 5 || got.ByModel["m"].Responses != 1 {
		t.Errorf("stats: %+v, %v", got, err)
	}
}
