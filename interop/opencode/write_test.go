package opencode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/opencode"
	"github.com/convlog/convlog/projection"
)

// OpenCode sorts messages by their times, and stores the messages of all sessions by their ids.
func TestWrittenMessagesAreInOrderAndHaveIDsOfTheirOwn(t *testing.T) {
	var format opencode.Format
	write := func(id string) string {
		c := interop.Conversation{ID: id, CWD: "/w", At: time.UnixMilli(9_000), Times: []time.Time{time.UnixMilli(5_000), time.UnixMilli(4_000)}}
		for _, text := range []string{"A summary.", "An older question."} {
			c.History = append(c.History, projection.Entry{Message: event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}})
		}
		w, err := format.Write(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(w.Body)
	}
	a, b := write(format.NewID()), write(format.NewID())
	if !strings.Contains(a, `"created":5000`) || !strings.Contains(a, `"created":5001`) {
		t.Errorf("the times of the messages: %s", a)
	}
	for _, id := range strings.Split(a, `"id":"`)[1:] {
		id, _, _ = strings.Cut(id, `"`)
		if strings.Contains(b, id) {
			t.Errorf("two sessions have the id %s", id)
		}
	}
}
