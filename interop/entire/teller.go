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

// teller makes items of lines.
type teller struct {
	agent string         // that of the first line
	cli   jsontext.Value // the version that wrote it; nil if it does not say
	items []document.Item
	spent document.Totals
	chain event.Digest // of all that was said so far, but for results
}

// pass takes in what was said.
func (t *teller) pass(said jsontext.Value) {
	t.chain = event.DigestOf([]byte(string(t.chain) + "\n" + string(said)))
}

// named is a name that stays while the file grows.
func (t *teller) named(kind string) string {
	const digits = 24
	return kind + "-" + t.chain.Hex()[:digits]
}

// line tells a line.
func (t *teller) line(rec *interop.Record) {
	l := lineOf(rec)
	blocks, err := l.blocks()
	if err != nil || !l.says() {
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

// raw keeps a line as it is. It is known again when another version of the CLI writes
// it.
func (t *teller) raw(l *line) {
	it := document.Raw(*l.rec, l.kind)
	l.Take("cli_version")
	l.Take("ts")
	t.pass(l.Rest())
	it.At, it.Name = l.at, t.named("line")
	t.items = append(t.items, it)
}

// step tells what an answer took that says nothing.
func (t *teller) step(l *line, usage event.Usage) {
	step := event.StepCompletion{Usage: usage, Extra: l.rest(t.agent, t.cli)}
	t.pass(jsontext.Value(l.PeekText("id")))
	t.items = append(t.items, document.Item{Rec: *l.rec, Name: t.named("line"), At: l.at, Payload: step, Kind: l.kind})
}

// begin takes in that a message begins.
func (t *teller) begin(l *line) {
	l.Take("content")
	t.pass(jsontext.Value(l.kind))
}

// user tells what the user says.
func (t *teller) user(l *line, blocks []interop.Record) {
	t.begin(l)
	m := event.Message{Role: event.User, Extra: l.rest(t.agent, t.cli)}
	for i := range blocks {
		t.pass(blocks[i].Value)
		m.Parts = append(m.Parts, part(blocks[i].Value, userBlocks))
	}
	t.items = append(t.items, document.Item{Rec: *l.rec, Name: t.named("line"), At: l.at, Payload: m, Kind: l.kind})
}

// answer tells what an agent said and did, block by block.
func (t *teller) answer(l *line, blocks []interop.Record, usage event.Usage) {
	t.begin(l)
	m := event.Message{Role: event.Assistant, Group: cmp.Or(l.Maybe("id"), t.named("line")), Usage: usage}
	m.Extra = l.rest(t.agent, t.cli)
	for i := range blocks {
		t.block(l, &blocks[i], m)
		m.Usage, m.Extra = event.Usage{}, nil
	}
}

// block tells a block of an answer, and its result, which may come when others
// followed the call.
func (t *teller) block(l *line, rec *interop.Record, m event.Message) {
	p, result := t.call(rec.Value)
	if p.Type == "" {
		t.pass(rec.Value)
		p = part(rec.Value, answerBlocks)
	}
	m.Parts = []event.Part{p}
	t.items = append(t.items, document.Item{Rec: *rec, Name: t.named("block"), At: l.at, Payload: m, Kind: l.kind})
	if result == nil {
		return
	}
	r := event.Message{Role: event.Tool, Parts: []event.Part{resultOf(&p, result)}}
	t.items = append(t.items, document.Item{
		Rec: *rec, Part: 1, Name: t.named("result"), Late: true, At: l.at, Payload: r, Kind: l.kind,
	})
}

// call reads a call, and apart from it its result, which is nil if there is none. The
// part has no type where the block is no call.
func (t *teller) call(v jsontext.Value) (p event.Part, result jsontext.Value) {
	o, err := parts.Open(v)
	if err != nil || o.Text("type") != "tool_use" {
		return p, nil
	}
	if k := o.Peek("result").Kind(); k == '{' || k == '"' {
		result = o.Take("result")
	}
	said := o.Rest()
	id, name := o.Maybe("id"), o.Required("name")
	if o.Failed {
		return p, nil
	}
	t.pass(said)
	p = event.ToolCall(cmp.Or(id, t.named("call")), name, o.Take("input"))
	p.Extra = o.Rest()
	return p, result
}

// resultOf reads the result that stands in a call: what the tool put out, whether it
// failed, and what else is told.
func resultOf(call *event.Part, v jsontext.Value) event.Part {
	p := event.ToolResult(call.CallID, call.Name)
	output, o := v, parts.Members{}
	if v.Kind() == '{' {
		o, _ = parts.Open(v) // the line could be read
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

// The types of blocks that are read; what else there is stays as it is.
var (
	userBlocks   = map[string]bool{"text": true, "image": true, "document": true}
	answerBlocks = map[string]bool{"text": true, "thinking": true, "redacted_thinking": true, "image": true, "document": true}
)

// part reads a block that says something. One without a type is a text.
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
	p, _ := (&parts.Reader{}).Block(v) // without Put nothing can fail
	return p
}
