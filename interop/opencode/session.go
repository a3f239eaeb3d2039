package opencode

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// read reads a session.
func read(_ *document.File, rec *interop.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	var info struct {
		ID        string `json:"id"`
		Parent    string `json:"parentID"`
		Title     string `json:"title"`
		Directory string `json:"directory"`
		Version   string `json:"version"`
		Time      clock  `json:"time"`
		// Revert is up to where the session was rewound, until it goes on.
		Revert struct {
			Message string `json:"messageID"`
			Part    string `json:"partID"`
		} `json:"revert"`
	}
	if v := o.Peek("info"); v.Kind() != '{' || json.Unmarshal(v, &info) != nil || info.ID == "" {
		return nil, document.ErrShape
	}
	messages, err := document.Elements(rec, o.Take("messages"))
	if err != nil {
		return nil, document.ErrShape
	}
	s := document.Session{ID: info.ID, Version: info.Version, Rec: rec, At: info.Time.at(), About: event.Session{
		Title: info.Title, Agent: "OpenCode", CWD: info.Directory, Extra: stableMembers(&o),
		Parent: event.SessionParent{SessionID: info.Parent},
	}}
	t := builder{firstItems: map[string]int{}, requests: map[string]compactionRequest{}}
	for i := range messages {
		t.isLast = i == len(messages)-1
		if err := t.addMessage(&messages[i]); err != nil {
			return nil, err
		}
	}
	t.flushClearings(forever)
	for i := range t.items {
		t.items[i].Late = true // parts grow while others follow
	}
	s.Items, s.Held = t.items, t.held
	if first, ok := t.firstItems[info.Revert.Message]; ok {
		s.Head = t.itemBefore(first, info.Revert.Part)
	}
	return []document.Session{s}, nil
}

// before names the item before a message, or before a part of it; none has the name
// where the message is the first.
func (t *builder) itemBefore(first int, part string) string {
	end := first
	for i := first; i < len(t.items) && part != ""; i++ {
		if t.items[i].Name == part {
			end = i
			break
		}
	}
	for _, it := range slices.Backward(t.items[:end]) {
		if it.Name != "" {
			return it.Name
		}
	}
	return "before " + t.items[first].Name
}

// lasting is what stands around the messages, without what changes with each.
func stableMembers(o *parts.Members) jsontext.Value {
	info, err := parts.Open(o.Take("info"))
	if err != nil {
		return o.Rest()
	}
	if at, err := parts.Open(info.Peek("time")); err == nil {
		info.Take("time")
		at.Take("updated")
		info.Put("time", at.Rest())
	}
	o.Put("info", info.Rest())
	return o.Rest()
}

// clock is when something was made, began or ended, in milliseconds.
type clock struct {
	Created float64 `json:"created"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	// Completed is when an answer was.
	Completed float64 `json:"completed"`
	// Compacted is since when a result is shown no more.
	Compacted float64 `json:"compacted"`
}

func (c clock) at() time.Time  { return milli(max(c.Created, c.Start)) }
func (c clock) end() time.Time { return milli(max(c.Created, c.Start, c.End)) }

func milli(ms float64) time.Time {
	if ms <= 0 || ms > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}
