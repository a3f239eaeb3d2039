package opencode

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/records"
)

// compactionRequest requests a summary of the earlier messages.
type compactionRequest struct {
	Auto bool `json:"auto"`
	// Tail is the id of the first message that the model still sees; empty if there is
	// none.
	Tail string `json:"tail_start_id"`
}

// addRequest records that the message requests a summary.
func (b *builder) addRequest(part jsontext.Value) {
	var p compactionRequest
	if json.Unmarshal(part, &p) == nil {
		b.requests[b.info.ID] = p
	}
}

// addCompaction adds a compaction if the answer is a requested summary. The summary also
// replaces the request and the answer.
func (b *builder) addCompaction() {
	asked, ok := b.requests[b.info.Parent]
	if !ok || b.info.Summary.Kind() != 't' || b.info.Finish == "" || len(b.info.Error) > 0 {
		return
	}
	forgotten := b.items
	if tail, ok := b.firstItems[asked.Tail]; ok && tail <= b.firstItems[b.info.Parent] {
		forgotten = append(slices.Clone(b.items[:tail]), b.items[b.firstItems[b.info.Parent]:]...)
	}
	it := document.Item{Rec: *b.rec, Part: 3, Partial: true, Name: "compaction " + b.info.ID, At: b.until, Kind: "message", Forgets: []string{}}
	for i := range forgotten {
		it.Forgets = append(it.Forgets, forgotten[i].Name)
	}
	c := event.Compaction{Strategy: "summary", Trigger: "manual", Summary: b.answerText()}
	if asked.Auto {
		c.Trigger = "auto"
	}
	it.Payload = c
	b.items = append(b.items, it)
}

// answerText is the text of the answer.
func (b *builder) answerText() (text string) {
	for _, it := range b.items[b.firstItems[b.info.ID]:] {
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
func (b *builder) addClearing(rec *records.Record, p *toolPart) {
	since := milli(p.State.Time.Compacted)
	if since.IsZero() || p.ID == "" {
		return
	}
	it := document.Item{Rec: *rec, Part: 2, Partial: true, Name: "cleared " + p.ID, At: since, Kind: "tool"}
	it.Payload = event.Compaction{Strategy: "clear_results", Trigger: "auto", Cleared: []string{p.Call}}
	b.clearings = append(b.clearings, clearing{since, it})
}

// flushClearings adds the results that were cleared before a time.
func (b *builder) flushClearings(before time.Time) {
	slices.SortStableFunc(b.clearings, func(a, b clearing) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.item.Name, b.item.Name))
	})
	n := 0
	for n < len(b.clearings) && b.clearings[n].since.Before(before) {
		b.items = append(b.items, b.clearings[n].item)
		n++
	}
	b.clearings = b.clearings[n:]
}
