package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/web"
)

// The timeline has each turn once, with the operations of the library at their places.
func TestTimeline(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, e event.Event) event.Event {
		e.Timestamp = begin.Add(time.Duration(seconds) * time.Second)
		return e
	}
	const turns = 60
	for i := range turns {
		id := fmt.Sprint("c", i)
		s.addEach("s", at(100*i, event.UserMessage(fmt.Sprintf("question %d %s", i, hostileText))),
			at(100*i, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "tool"+hostileText, []byte(`{}`))}})),
			at(100*i+25, event.ToolOutput(id, "tool", []byte("x"), i == 3)), at(100*i+50, event.AssistantMessage("done")))
	}
	run, err := runlog.Load(t.Context(), s.log, "s", runlog.Options{Outline: true})
	if err != nil || len(run.Turns) != turns {
		t.Fatal(len(run.Turns), err)
	}
	body := s.page("/s/s/timeline")
	checkHostile(t, body)
	if got := s.each("/s/s/timeline", `dir="auto">(\d+) question`); len(got) != turns || got[turns-1] != fmt.Sprint(run.Turns[turns-1].Index) {
		t.Errorf("the pages have the turns %v", got)
	}
	want := map[string]int{}
	for _, turn := range run.Turns {
		for _, op := range turn.Ops {
			want[fmt.Sprint(op.Seq)]++
		}
	}
	got := s.each("/s/s/timeline", `<div class="time d0[^"]*"><a href="/s/s/e/(\d+)"`)
	for _, seq := range got {
		want[seq]--
	}
	for seq, n := range want {
		if n != 0 {
			t.Errorf("the operation of event %s is missing %d times", seq, n)
		}
	}
	if !strings.Contains(body, `class="t-tool" x="0.00" width="50.00"`) {
		t.Error("the calls are not at their places")
	}
	if strings.Count(body, `class="time d0 failed"`) != 1 {
		t.Error("the failed call is not marked")
	}
}
