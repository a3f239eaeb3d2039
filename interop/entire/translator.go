package entire

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// translator turns lines into items.
type translator struct {
	agent string         // of the first line
	cli   jsontext.Value // version of the CLI; nil if unknown
	items []document.Item
	spent document.Totals
	chain event.Digest // of all content so far, without results
}

// extend adds a value to the chain.
func (t *translator) extend(value jsontext.Value) {
	t.chain = event.DigestOf([]byte(string(t.chain) + "\n" + string(value)))
}

// name returns an item name that stays the same while the file grows.
func (t *translator) name(kind string) string {
	const digits = 24
	return kind + "-" + t.chain.Hex()[:digits]
}

// line adds the items of a line.
func (t *translator) line(rec *interop.Record) {
	l := lineOf(rec)
	blocks, err := l.blocks()
	if err != nil || !l.isMessage() {
		t.raw(&l)
		return
	}
	usage := event.Usage{}
	if l.kind == "assistant" {
		usage = l.usage()
		t.spent.Usage = t.spent.Usage.Add(usage)
	}
	switch {
	case len(blocks) == 0 && usage.IsZero():
		t.raw(&l)
	case len(blocks) == 0:
		t.step(&l, usage)
	case l.kind == "user":
		t.user(&l, blocks)
	default:
		t.answer(&l, blocks, usage)
	}
}

// raw stores a line unchanged. The name of the item depends neither on the CLI
// version nor on the time, so a rewritten file adds nothing.
func (t *translator) raw(l *line) {
	it := document.Raw(*l.rec, l.kind)
	l.Take("cli_version")
	l.Take("ts")
	t.extend(l.Rest())
	it.At, it.Name = l.at, t.name("line")
	t.items = append(t.items, it)
}

// step adds the token counts of an answer without blocks.
func (t *translator) step(l *line, usage event.Usage) {
	step := event.StepCompletion{Usage: usage, Extra: l.extra(t.agent, t.cli)}
	t.extend(jsontext.Value(l.PeekText("id")))
	t.items = append(t.items, document.Item{Rec: *l.rec, Name: t.name("line"), At: l.at, Payload: step, Kind: l.kind})
}

// begin adds the start of a message to the chain.
func (t *translator) begin(l *line) {
	l.Take("content")
	t.extend(jsontext.Value(l.kind))
}

// user adds a user message.
func (t *translator) user(l *line, blocks []interop.Record) {
	t.begin(l)
	m := event.Message{Role: event.User, Extra: l.extra(t.agent, t.cli)}
	for i := range blocks {
		t.extend(blocks[i].Value)
		m.Parts = append(m.Parts, part(blocks[i].Value, userBlocks))
	}
	t.items = append(t.items, document.Item{Rec: *l.rec, Name: t.name("line"), At: l.at, Payload: m, Kind: l.kind})
}

// answer adds the blocks of an answer, one message each.
func (t *translator) answer(l *line, blocks []interop.Record, usage event.Usage) {
	t.begin(l)
	m := event.Message{Role: event.Assistant, Group: cmp.Or(l.Maybe("id"), t.name("line")), Usage: usage}
	m.Extra = l.extra(t.agent, t.cli)
	for i := range blocks {
		t.block(l, &blocks[i], m)
		m.Usage, m.Extra = event.Usage{}, nil
	}
}

// block adds a block of an answer, then its result if it has one. The result can be
// added later than the events after the call.
func (t *translator) block(l *line, rec *interop.Record, m event.Message) {
	p, result := t.call(rec.Value)
	if p.Type == "" {
		t.extend(rec.Value)
		p = part(rec.Value, answerBlocks)
	}
	m.Parts = []event.Part{p}
	t.items = append(t.items, document.Item{Rec: *rec, Name: t.name("block"), At: l.at, Payload: m, Kind: l.kind})
	if result == nil {
		return
	}
	r := event.Message{Role: event.Tool, Parts: []event.Part{resultOf(&p, result)}}
	t.items = append(t.items, document.Item{
		Rec: *rec, Part: 1, Name: t.name("result"), Late: true, At: l.at, Payload: r, Kind: l.kind,
	})
}

// call parses a tool call and returns its result separately; result is nil if there
// is none. The part has no type if the block is not a call.
func (t *translator) call(v jsontext.Value) (p event.Part, result jsontext.Value) {
	o, err := parts.Open(v)
	if err != nil || o.Text("type") != "tool_use" {
		return p, nil
	}
	if k := o.Peek("result").Kind(); k == '{' || k == '"' {
		result = o.Take("result")
	}
	content := o.Rest()
	id, name := o.Maybe("id"), o.Required("name")
	if o.Failed {
		return p, nil
	}
	t.extend(content)
	p = event.ToolCall(cmp.Or(id, t.name("call")), name, o.Take("input"))
	p.Extra = o.Rest()
	return p, result
}

// resultOf parses the result of a call: the output, whether the tool failed, and the
// other members as extra.
func resultOf(call *event.Part, v jsontext.Value) event.Part {
	p := event.ToolResult(call.CallID, call.Name)
	output, o := v, parts.Members{}
	if v.Kind() == '{' {
		o, _ = parts.Open(v) // v is part of a valid line
		output = o.Take("output")
	}
	if text, ok := rawjson.Text(output); ok && text != "" {
		p.Content = []event.Part{event.Text(text)}
	} else if !ok && output != nil {
		p.Content = []event.Part{event.Opaque("output", output)}
	}
	status := o.PeekText("status")
	if p.IsError = status == "error"; p.IsError || status == "success" {
		o.Take("status")
	}
	p.Extra = o.Rest()
	return p
}

// The types of blocks that are parsed. Other blocks become opaque parts.
var (
	userBlocks   = map[string]bool{"text": true, "image": true, "document": true}
	answerBlocks = map[string]bool{"text": true, "thinking": true, "redacted_thinking": true, "image": true, "document": true}
)

// part parses a block. A block without a type is a text.
func part(v jsontext.Value, known map[string]bool) event.Part {
	if text, ok := rawjson.Text(v); ok {
		return event.Text(text)
	}
	o, err := parts.Open(v)
	if err != nil {
		return event.Opaque("block", v)
	}
	kind := o.PeekText("type")
	if !o.Has("type") && o.Has("text") {
		p := event.Text(o.Text("text"))
		p.ID = o.Maybe("id")
		if p.Extra = o.Rest(); !o.Failed {
			return p
		}
	}
	if !known[kind] {
		return event.Opaque(cmp.Or(kind, "block"), v)
	}
	p, _ := (&parts.Reader{}).Block(v) // a Reader without Put returns no error
	return p
}
