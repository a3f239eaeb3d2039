package entire

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// translator turns lines into items.
type translator struct {
	agent string         // of the first line
	cli   jsontext.Value // version of the CLI; nil if unknown
	items []document.Item
	spent document.Totals
	runs  int // groups so far
	calls int // calls so far
}

// keyOf is the key of an item, from values that stay the same while the file grows.
func keyOf(kind string, values ...jsontext.Value) event.Digest {
	b := []byte(kind)
	for _, v := range values {
		b = append(append(b, '\n'), v...)
	}
	return event.DigestOf(b)
}

// line adds the items of a line.
func (t *translator) line(rec *records.Record) {
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

// raw stores a line unchanged. The key of the item depends neither on the CLI version nor
// on the time, so a rewritten file adds nothing.
func (t *translator) raw(l *line) {
	it := document.Raw(*l.rec, l.kind)
	l.Take("cli_version")
	l.Take("ts")
	it.At, it.Key = l.at, keyOf("line", l.Rest())
	t.items = append(t.items, it)
}

// step adds the token counts of an answer without blocks.
func (t *translator) step(l *line, usage event.Usage) {
	step := event.StepCompletion{Usage: usage, Extra: l.extra(t.agent, t.cli)}
	key := keyOf("step", jsontext.Value(l.PeekText("id")))
	t.items = append(t.items, document.Item{Rec: *l.rec, Key: key, At: l.at, Payload: step, Kind: l.kind})
}

// user adds a user message.
func (t *translator) user(l *line, blocks []records.Record) {
	l.Take("content")
	m := event.Message{Role: event.User, Extra: l.extra(t.agent, t.cli)}
	var said []jsontext.Value
	for i := range blocks {
		said = append(said, blocks[i].Value)
		m.Parts = append(m.Parts, part(blocks[i].Value, userBlocks))
	}
	t.items = append(t.items, document.Item{Rec: *l.rec, Key: keyOf(l.kind, said...), At: l.at, Payload: m, Kind: l.kind, Context: records.IsGenerated(m.Text())})
}

// answer adds the blocks of an answer, one message each.
func (t *translator) answer(l *line, blocks []records.Record, usage event.Usage) {
	l.Take("content")
	m := event.Message{Role: event.Assistant, Group: l.Maybe("id"), Usage: usage}
	if m.Group == "" {
		t.runs++
	}
	m.Extra = l.extra(t.agent, t.cli)
	for i := range blocks {
		t.block(l, &blocks[i], m)
		m.Usage, m.Extra = event.Usage{}, nil
	}
}

// block adds a block of an answer, then its result if it has one. The result can be
// added later than the events after the call.
func (t *translator) block(l *line, rec *records.Record, m event.Message) {
	p, said, result := t.call(rec.Value)
	if p.Type == "" {
		p, said = part(rec.Value, answerBlocks), rec.Value
	}
	m.Parts = []event.Part{p}
	it := document.Item{Rec: *rec, Partial: result != nil, Key: keyOf(l.kind, said), At: l.at, Payload: m, Kind: l.kind}
	if m.Group == "" {
		it.Run = t.runs
	}
	t.items = append(t.items, it)
	if result == nil {
		return
	}
	r := event.Message{Role: event.Tool, Parts: []event.Part{resultOf(&p, result)}}
	t.items = append(t.items, document.Item{
		Rec: *rec, Part: 1, Partial: true, Answer: true, Late: true, At: l.at, Payload: r, Kind: l.kind,
	})
}

// call parses a tool call and returns its result separately; result is nil if there
// is none. said is the block without the result. The part has no type if the block is
// not a call. A call without an id is named by its number in the file.
func (t *translator) call(v jsontext.Value) (p event.Part, said, result jsontext.Value) {
	o, err := parts.Open(v)
	if err != nil || o.Text("type") != "tool_use" {
		return p, nil, nil
	}
	if k := o.Peek("result").Kind(); k == '{' || k == '"' {
		result = o.Take("result")
	}
	said = o.Rest()
	id, name, input := o.Maybe("id"), o.Required("name"), o.Take("input")
	rest := o.Rest()
	if o.Failed || (input == nil || result == nil) && hasObject(rest) {
		return p, nil, nil // the arguments or the result have another name
	}
	t.calls++
	p = event.ToolCall(cmp.Or(id, fmt.Sprintf("call_%d", t.calls)), name, input)
	p.Extra = rest
	return p, said, result
}

// hasObject reports whether a member of an object is an object.
func hasObject(v jsontext.Value) bool {
	if v == nil {
		return false
	}
	members, err := rawjson.Members(v)
	return err == nil && slices.ContainsFunc(members, func(m rawjson.Member) bool { return m.Value.Kind() == '{' })
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
