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

// compactionPart asks for a summary of what was said before.
type compactionRequest struct {
	Auto bool `json:"auto"`
	// Tail is the first message that stays as it was; empty if none does.
	Tail string `json:"tail_start_id"`
}

// asks takes in that the message asks for a summary.
func (t *builder) addRequest(part jsontext.Value) {
	var p compactionRequest
	if json.Unmarshal(part, &p) == nil {
		t.requests[t.info.ID] = p
	}
}

// compact adds a compaction if the answer is the summary that was asked for. What
// asked for it and the answer itself are shown no more, too: the summary stands
// for them.
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

// said are the texts of the message.
func (t *builder) answerText() (text string) {
	for _, it := range t.items[t.firstItems[t.info.ID]:] {
		if m, ok := it.Payload.(event.Message); ok && m.Role == event.Assistant {
			text += m.Text()
		}
	}
	return text
}

// prunedResult is a result that is shown no more.
type clearing struct {
	since time.Time
	item  document.Item
}

// forever is later than anything.
var forever = time.Unix(1<<40, 0)

// prune takes in that the result of a call is shown no more, if so.
func (t *builder) addClearing(rec *interop.Record, p *toolPart) {
	since := milli(p.State.Time.Compacted)
	if since.IsZero() || p.ID == "" {
		return
	}
	it := document.Item{Rec: *rec, Part: 2, Name: "cleared " + p.ID, At: since, Kind: "tool"}
	it.Payload = event.Compaction{Strategy: "clear_results", Trigger: "auto", Cleared: []string{p.Call}}
	t.clearings = append(t.clearings, clearing{since, it})
}

// clear adds what was said to be shown no more before a message came.
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
