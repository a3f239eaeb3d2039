package web_test

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/web"
)

// slowStore reads parts of sessions at once, and whole sessions when it is open.
type slowStore struct {
	eventlog.Store
	open chan struct{}
}

func (s *slowStore) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	if !r.Backward && r.Limit == 0 && (r.To == 0 || r.To-r.From > 300) {
		<-s.open
	}
	return s.Store.Read(ctx, session, r)
}

// The page of a session whose whole read takes long has its part of the conversation at once, and
// its outline when the read has ended.
func TestLongSession(t *testing.T) {
	store := &slowStore{memory.New(), make(chan struct{})}
	writer := eventlog.Open(store.Store)
	for i := range 150 {
		if _, err := writer.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(fmt.Sprintf("question %d", i)), event.UserMessage("and more"), event.AssistantMessage("answer")); err != nil {
			t.Fatal(err)
		}
	}
	s := siteOver(t, eventlog.Open(store), web.Options{})
	body := s.page("/s/s?from=301")
	reading := regexp.MustCompile(`data-reading="([^"]*)"`).FindStringSubmatch(body)
	if reading == nil || !strings.Contains(body, "question 100") || strings.Contains(body, "150 turns") {
		t.Fatalf("the first page:\n%s", body)
	}
	close(store.open)
	if part := s.page(reading[1]); !strings.Contains(part, "question 1") {
		t.Fatalf("%s:\n%s", reading[1], part)
	}
	body = s.page("/s/s?from=301")
	if strings.Contains(body, "data-reading") || !strings.Contains(body, "150 turns") || !strings.Contains(body, "Turn 101") {
		t.Errorf("the page after the read:\n%s", body)
	}
	s.page("/s/s?from=449") // the second message of the last turn
	if body = s.page("/s/s"); strings.Contains(body, "151 turns") {
		t.Error("a part of the conversation that begins in a turn adds a turn to the outline")
	}
}
