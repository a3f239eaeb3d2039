package openhands

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// maxForgotten limits a range of forgotten events.
const maxForgotten = 1 << 16

// condensation names the events that the model no longer sees, by id or as a range.
type condensation struct {
	IDs     []int64 `json:"forgotten_event_ids"`
	Start   *int64  `json:"forgotten_events_start_id"`
	End     *int64  `json:"forgotten_events_end_id"`
	Summary string  `json:"summary"`
}

// forgotten are the item names of the events.
func (c *condensation) forgotten() (names []string) {
	ids := c.IDs
	if c.Start != nil && c.End != nil && 0 <= *c.Start && *c.Start <= *c.End && *c.End-*c.Start < maxForgotten {
		for id := *c.Start; id <= *c.End; id++ {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		names = append(names, itemName(strconv.FormatInt(id, 10)))
	}
	return names
}

// itemName is the name of an event's item.
func itemName(id string) string { return "event " + id }

// setCondensation makes the item of a condensation action a compaction.
func setCondensation(it *document.Item, rec *records.Record) {
	var action struct {
		Args condensation `json:"args"`
	}
	o, err := parts.Open(rec.Value)
	if err != nil || json.Unmarshal(rec.Value, &action) != nil {
		return
	}
	args, err := parts.Open(o.Take("args"))
	if err != nil {
		return
	}
	for _, name := range []string{"forgotten_event_ids", "summary"} {
		args.Take(name)
	}
	o.Put("args", args.Rest())
	setCompaction(it, action.Args.forgotten(), action.Args.Summary, o.Rest())
}

// summarySuffix ends the id of the summary that replaces forgotten events.
const summarySuffix = "-summary"

// setSDKCondensation makes the item of a Condensation event a compaction.
func setSDKCondensation(it *document.Item, o *parts.Members) {
	var ids []string
	if json.Unmarshal(o.Peek("forgotten_event_ids"), &ids) != nil {
		return
	}
	o.Take("forgotten_event_ids")
	forgets := make([]string, 0, len(ids))
	for _, id := range ids {
		forgets = append(forgets, itemName(strings.TrimSuffix(id, summarySuffix)))
	}
	setCompaction(it, forgets, o.Maybe("summary"), o.Rest())
}

// setCompaction makes an item a compaction, which replaces the compaction before it.
func setCompaction(it *document.Item, forgets []string, summary string, extra jsontext.Value) {
	it.Forgets, it.Renews = forgets, true
	it.Payload = event.Compaction{Strategy: "summary", Trigger: "auto", Summary: summary, Extra: extra}
}
