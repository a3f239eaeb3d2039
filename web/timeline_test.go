package web_test

import (
	"fmt"
	"slices"
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

// A page shows the first operations of a long turn, and reads the turns that it shows, not the session.
func TestTimelineIsBounded(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	var all []event.Event
	add := func(turns, calls int) {
		for range turns {
			all = append(all, event.UserMessage("question"))
			for range calls {
				id := fmt.Sprint("c", len(all))
				all = append(all, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "run", []byte(`{}`))}}), event.ToolOutput(id, "run", []byte("x"), false))
			}
			all = append(all, event.AssistantMessage("done"))
		}
	}
	add(30, 100)
	add(1, 3000)
	add(5, 1)
	for part := range slices.Chunk(all, 1000) {
		s.add("s", part...)
	}
	first := s.page("/s/s/timeline")
	if got := strings.Count(first, "<section><h2>"); got != 24 { // of 202 events each
		t.Errorf("the first page has %d turns", got)
	}
	if got := strings.Count(first, `<div class="time `); got != 200 {
		t.Errorf("the first page has %d operations", got)
	}
	long := s.page("/s/s/timeline?from=31")
	if !strings.Contains(long, "the first 5,000 events are drawn") || strings.Count(long, "<section><h2>") != 1 {
		t.Errorf("the page of the long turn is not cut: %d turns, %v", strings.Count(long, "<section><h2>"), strings.Contains(long, "events are drawn"))
	}
	seen := map[string]int{}
	for _, number := range s.each("/s/s/timeline", `<section><h2><a href="[^"]*" dir="auto">(\d+) `) {
		seen[number]++
	}
	if len(seen) != 36 {
		t.Errorf("the pages have %d turns", len(seen))
	}
}
