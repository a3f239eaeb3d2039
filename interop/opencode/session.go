package opencode

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// sessionInfo is the info of a session.
type sessionInfo struct {
	ID        string `json:"id"`
	Parent    string `json:"parentID"`
	Title     string `json:"title"`
	Directory string `json:"directory"`
	Version   string `json:"version"`
	Time      clock  `json:"time"`
	// Revert is the point that the session was rewound to. The next message clears it.
	Revert struct {
		Message string `json:"messageID"`
		Part    string `json:"partID"`
	} `json:"revert"`
}

// read parses a document into a session.
func read(_ *document.File, rec *records.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	var info sessionInfo
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
	b, err := build(messages, info.Time.Created)
	if err != nil {
		return nil, err
	}
	s.Items, s.Held, s.Copies, s.IsCopy = b.items, b.held, true, b.isCopy
	s.Begun = isBegun
	if first, ok := b.firstItems[info.Revert.Message]; ok {
		s.Head = b.itemBefore(first, info.Revert.Part)
	}
	return []document.Session{s}, nil
}

// build makes the items of all messages of a session that began at a time.
func build(messages []records.Record, began float64) (*builder, error) {
	b := builder{
		began: began, ids: count{}, calls: count{}, firstItems: map[string]int{}, requests: map[string]compactionRequest{},
	}
	for i := range messages {
		b.isLast = i == len(messages)-1
		if err := b.addMessage(&messages[i]); err != nil {
			return nil, err
		}
	}
	b.flushClearings(forever)
	for i := range b.items {
		b.items[i].Late = true // parts grow after later parts were added
		b.items[i].Key = keyOf(&b.items[i])
	}
	return &b, nil
}

// keyOf is a digest of a step or of a raw part that a copy with other ids has, too; empty for
// other items.
func keyOf(it *document.Item) event.Digest {
	switch p := it.Payload.(type) {
	case event.StepCompletion:
		p.Extra = nil
		if v, err := json.Marshal(p); err == nil {
			return event.DigestOf(v)
		}
	case nil:
		o, err := parts.Open(it.Rec.Value)
		if err != nil || it.Name == "" {
			return ""
		}
		for _, name := range []string{"id", "sessionID", "messageID"} {
			o.Take(name)
		}
		return event.DigestOf(o.Rest())
	}
	return ""
}

// itemBefore is the name of the item before a message, or before one of its parts. If
// there is none, the name matches no item.
func (b *builder) itemBefore(first int, part string) string {
	end := first
	for i := first; i < len(b.items) && part != ""; i++ {
		if b.items[i].Name == part {
			end = i
			break
		}
	}
	for _, it := range slices.Backward(b.items[:end]) {
		if it.Name != "" {
			return it.Name
		}
	}
	return "before " + b.items[first].Name
}

// stableMembers returns the members of the document that do not change with each
// message.
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
	for _, name := range []string{"cost", "tokens", "summary"} { // sums
		info.Take(name)
	}
	o.Put("info", info.Rest())
	return o.Rest()
}

// clock has times in milliseconds.
type clock struct {
	Created float64 `json:"created"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	// Completed is the end of an answer.
	Completed float64 `json:"completed"`
	// Compacted is the time when a result was cleared.
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
