package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// A list of many sessions keeps the columns of some, and of all that the sum of the week needs.
func TestRowsKeepFewColumns(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	h, err := New(log)
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range map[string]time.Time{"old": time.Now().AddDate(0, -2, 0), "new": time.Now()} {
		e := event.New(event.Message{Role: event.Assistant, Model: "m", Parts: []event.Part{event.Text("x")}})
		const cost = 1_000_000
		e.Timestamp, e.Cost = at, cost
		if _, err := log.Append(t.Context(), id, eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostColumns {
		h.rows.kept[fmt.Sprint("other-", i)] = &columns{}
	}
	for _, id := range []string{"old", "new"} {
		row, err := h.rows.one(t.Context(), id, false)
		if err != nil || !row.IsRead() {
			t.Fatal(err)
		}
	}
	if c := h.rows.kept["new"]; h.rows.kept["old"] != nil || c == nil || len(c.recent) != 1 || c.content != nil {
		t.Errorf("kept: old %v, new %v", h.rows.kept["old"], h.rows.kept["new"])
	}
}
