package opencode

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// builder turns messages into items.
type builder struct {
	items []document.Item

	began  float64 // when the session began
	isCopy bool    // a message is older than its session: a fork begins with copies

	rec  *records.Record // the current message
	info messageInfo
	// infoValue is the info of the message, for the extra of its first item.
	infoValue jsontext.Value
	at        time.Time // when the message began
	// until is the time of the newest part of the message.
	until time.Time
	// part is the id of the current part.
	part string
	// ids counts the ids of messages and parts, calls the ids of calls: a program that masks
	// an export can give many of them one id.
	ids, calls count
	// isLast is true for the last message. held counts its records that wait until they
	// are complete.
	isLast bool
	held   int

	// firstItems are the indexes of the messages' first items, by message id. requests
	// are the messages that request a summary, by id. clearings are the results to
	// clear, with times.
	firstItems map[string]int
	requests   map[string]compactionRequest
	clearings  []clearing
}

// messageInfo is the info of a message.
type messageInfo struct {
	ID       string  `json:"id"`
	Role     string  `json:"role"`
	Model    string  `json:"modelID"`
	Provider string  `json:"providerID"`
	Cost     float64 `json:"cost"`
	Tokens   tokens  `json:"tokens"`
	Time     clock   `json:"time"`
	// Members of an answer. Parent is the message that it answers.
	Parent  string         `json:"parentID"`
	Summary jsontext.Value `json:"summary"`
	Finish  string         `json:"finish"`
	Error   jsontext.Value `json:"error"`
}

// tokens are the token counts of a step. Output does not include reasoning.
type tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

func (t *tokens) usage() event.Usage {
	reasoning := max(0, t.Reasoning)
	return event.Usage{
		InputTokens: max(0, t.Input), OutputTokens: max(0, t.Output) + reasoning, ReasoningTokens: reasoning,
		CacheReadTokens: max(0, t.Cache.Read), CacheWriteTokens: max(0, t.Cache.Write),
	}
}

// addMessage adds the items of a message.
func (b *builder) addMessage(rec *records.Record) error {
	o, err := parts.Open(rec.Value)
	if err != nil {
		b.items = append(b.items, document.Raw(*rec, "message"))
		return nil
	}
	b.rec, b.info, b.infoValue = rec, messageInfo{}, o.Peek("info")
	pieces, err := document.Elements(rec, o.Peek("parts"))
	known := b.infoValue.Kind() == '{' && json.Unmarshal(b.infoValue, &b.info) == nil && b.info.ID != ""
	if err != nil || !o.Has("parts") || !known || b.info.Role != "user" && b.info.Role != "assistant" {
		b.items = append(b.items, document.Raw(*rec, "message"))
		return nil
	}
	b.info.ID = b.ids.distinct(b.info.ID)
	b.at = b.info.Time.at()
	b.until = b.at
	b.flushClearings(b.at)
	if pieces = b.finishedParts(pieces); b.held > 0 && len(pieces) == 0 {
		return nil
	}
	first := len(b.items)
	b.firstItems[b.info.ID] = first
	if b.info.Role == "user" {
		b.addUser(pieces)
	} else {
		b.addAnswer(pieces)
		b.addCompaction()
	}
	b.isCopy = b.isCopy || 0 < b.info.Time.Created && b.info.Time.Created < b.began
	return nil
}

// extra joins the info of the message, if the item is its first, with a part.
func (b *builder) extra(part jsontext.Value) jsontext.Value {
	var all []rawjson.Member
	if b.infoValue != nil {
		all = append(all, rawjson.Member{Name: "info", Value: b.infoValue})
		b.infoValue = nil
	}
	if part != nil {
		all = append(all, rawjson.Member{Name: "part", Value: part})
	}
	return rawjson.NonEmpty(all)
}

// addUser adds the message of a user, then its parts without content.
func (b *builder) addUser(pieces []records.Record) {
	m := event.Message{Role: event.User, Extra: b.extra(nil)}
	var others []document.Item
	for i := range pieces {
		p, kind, ok := contentPart(pieces[i].Value)
		if ok {
			m.Parts = append(m.Parts, p)
			continue
		}
		if kind == "compaction" {
			b.addRequest(pieces[i].Value)
		}
		b.part = b.ids.distinct(idOf(&pieces[i]))
		others = append(others, b.rawPart(&pieces[i], kind))
	}
	it := document.Item{
		Rec: *b.rec, Partial: len(others) > 0, Name: b.info.ID, At: b.at, Payload: m, Kind: "message", Context: isSynthetic(&m),
	}
	b.items = append(append(b.items, it), others...)
}

// isSynthetic reports whether OpenCode wrote all parts of a message of the user.
func isSynthetic(m *event.Message) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p event.Part) bool {
		o, err := parts.Open(p.Extra)
		return err != nil || o.Peek("synthetic").Kind() != 't'
	})
}

// rawPart returns an item with the raw current part.
func (b *builder) rawPart(rec *records.Record, kind string) document.Item {
	it := document.Raw(*rec, cmp.Or(kind, "part"))
	it.Name, it.At = b.part, b.until
	return it
}

// count counts ids.
type count map[string]int

// distinct returns an id, with a number after it if the id is not the first of its kind.
func (c count) distinct(id string) string {
	if c[id]++; c[id] == 1 || id == "" {
		return id
	}
	return id + "-" + strconv.Itoa(c[id])
}

// idOf is the id of a part; empty if it has none.
func idOf(rec *records.Record) string {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return ""
	}
	id := o.PeekText("id")
	return id
}

// contentPart parses a text, reasoning or file part. kind is the type of the part; ok is
// false for other types.
func contentPart(v jsontext.Value) (p event.Part, kind string, ok bool) {
	o, err := parts.Open(v)
	if err != nil {
		return p, "", false
	}
	kind = o.Text("type")
	switch kind {
	case "text":
		o.Need("text")
		p = event.Text(o.Text("text"))
	case "reasoning":
		o.Need("text")
		p = event.Reasoning(o.Text("text"), "")
	case "file":
		p = filePart(&o)
	}
	if p.Type == "" || o.Failed {
		return p, kind, false
	}
	if p.ID = o.Maybe("id"); p.ID != "" {
		o.Take("messageID")
		o.Take("sessionID")
	}
	p.Extra = o.Rest()
	return p, kind, true
}

// filePart parses a file part. Its url may contain the body. The result has no type if
// the part is malformed.
func filePart(o *parts.Members) (p event.Part) {
	media, name, address := o.Maybe("mime"), o.Maybe("filename"), o.Required("url")
	if o.Failed {
		return p
	}
	p = parts.FromURL(event.ImagePart, address)
	if len(media) < 6 || media[:6] != "image/" {
		p.Type = event.DocumentPart
	}
	p.MediaType, p.Name = cmp.Or(media, p.MediaType), name
	return p
}
