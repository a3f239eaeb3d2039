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
type compactionPart struct {
	Auto bool `json:"auto"`
	// Tail is the first message that stays as it was; empty if none does.
	Tail string `json:"tail_start_id"`
}

// asks takes in that the message asks for a summary.
func (t *teller) asks(part jsontext.Value) {
	var p compactionPart
	if json.Unmarshal(part, &p) == nil {
		t.asked[t.info.ID] = p
	}
}

// compact adds a compaction if the answer is the summary that was asked for. What
// asked for it and the answer itself are shown no more, too: the summary stands
// for them.
func (t *teller) compact() {
	asked, ok := t.asked[t.info.Parent]
	if !ok || t.info.Summary.Kind() != 't' || t.info.Finish == "" || len(t.info.Error) > 0 {
		return
	}
	forgotten := t.items
	if tail, ok := t.began[asked.Tail]; ok && tail <= t.began[t.info.Parent] {
		forgotten = append(slices.Clone(t.items[:tail]), t.items[t.began[t.info.Parent]:]...)
	}
	it := document.Item{Rec: *t.rec, Part: 3, Name: "compaction " + t.info.ID, At: t.at, Kind: "message", Forgets: []string{}}
	for i := range forgotten {
		it.Forgets = append(it.Forgets, forgotten[i].Name)
	}
	c := event.Compaction{Strategy: "summary", Trigger: "manual", Summary: t.said()}
	if asked.Auto {
		c.Trigger = "auto"
	}
	it.Payload = c
	t.items = append(t.items, it)
}

// said are the texts of the message.
func (t *teller) said() (text string) {
	for _, it := range t.items[t.began[t.info.ID]:] {
		if m, ok := it.Payload.(event.Message); ok && m.Role == event.Assistant {
			text += m.Text()
		}
	}
	return text
}

// prunedResult is a result that is shown no more.
type prunedResult struct {
	since time.Time
	item  document.Item
}

// forever is later than anything.
var forever = time.Unix(1<<40, 0)

// prune takes in that the result of a call is shown no more, if so.
func (t *teller) prune(rec *interop.Record, p *toolPart) {
	since := milli(p.State.Time.Compacted)
	if since.IsZero() || p.ID == "" {
		return
	}
	it := document.Item{Rec: *rec, Part: 2, Name: "cleared " + p.ID, At: since, Kind: "tool"}
	it.Payload = event.Compaction{Strategy: "clear_results", Trigger: "auto", Cleared: []string{p.Call}}
	t.pruned = append(t.pruned, prunedResult{since, it})
}

// clear adds what was said to be shown no more before a message came.
func (t *teller) clear(before time.Time) {
	slices.SortStableFunc(t.pruned, func(a, b prunedResult) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.item.Name, b.item.Name))
	})
	n := 0
	for n < len(t.pruned) && t.pruned[n].since.Before(before) {
		t.items = append(t.items, t.pruned[n].item)
		n++
	}
	t.pruned = t.pruned[n:]
}
