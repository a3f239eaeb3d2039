package opencode

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
)

// compactionRequest requests a summary of the earlier messages.
type compactionRequest struct {
	Auto bool `json:"auto"`
	// Tail is the id of the first message that the model still sees; empty if there is
	// none.
	Tail string `json:"tail_start_id"`
}

// addRequest records that the message requests a summary.
func (t *builder) addRequest(part jsontext.Value) {
	var p compactionRequest
	if json.Unmarshal(part, &p) == nil {
		t.requests[t.info.ID] = p
	}
}

// addCompaction adds a compaction if the answer is a requested summary. The summary also
// replaces the request and the answer.
func (t *builder) addCompaction() {
	asked, ok := t.requests[t.info.Parent]
	if !ok || t.info.Summary.Kind() != 't' || t.info.Finish == "" || len(t.info.Error) > 0 {
		return
	}
	forgotten := t.items
	if tail, ok := t.firstItems[asked.Tail]; ok && tail <= t.firstItems[t.info.Parent] {
		forgotten = append(slices.Clone(t.items[:tail]), t.items[t.firstItems[t.info.Parent]:]...)
	}
	it := document.Item{Rec: *t.rec, Part: 3, Name: "compaction " + t.info.ID, At: t.at, Kind: "message", Forgets: []string{}}
	for i := range forgotten {
		it.Forgets = append(it.Forgets, forgotten[i].Name)
	}
	c := event.Compaction{Strategy: "summary", Trigger: "manual", Summary: t.answerText()}
	if asked.Auto {
		c.Trigger = "auto"
	}
	it.Payload = c
	t.items = append(t.items, it)
}

// answerText is the text of the answer.
func (t *builder) answerText() (text string) {
	for _, it := range t.items[t.firstItems[t.info.ID]:] {
		if m, ok := it.Payload.(event.Message); ok && m.Role == event.Assistant {
			text += m.Text()
		}
	}
	return text
}

// clearing is a result to clear, and the time.
type clearing struct {
	since time.Time
	item  document.Item
}

// forever is later than any message.
var forever = time.Unix(1<<40, 0)

// addClearing records that the result of a call was cleared.
func (t *builder) addClearing(rec *interop.Record, p *toolPart) {
	since := milli(p.State.Time.Compacted)
	if since.IsZero() || p.ID == "" {
		return
	}
	it := document.Item{Rec: *rec, Part: 2, Name: "cleared " + p.ID, At: since, Kind: "tool"}
	it.Payload = event.Compaction{Strategy: "clear_results", Trigger: "auto", Cleared: []string{p.Call}}
	t.clearings = append(t.clearings, clearing{since, it})
}

// flushClearings adds the results that were cleared before a time.
func (t *builder) flushClearings(before time.Time) {
	slices.SortStableFunc(t.clearings, func(a, b clearing) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.item.Name, b.item.Name))
	})
	n := 0
	for n < len(t.clearings) && t.clearings[n].since.Before(before) {
		t.items = append(t.items, t.clearings[n].item)
		n++
	}
	t.clearings = t.clearings[n:]
}
