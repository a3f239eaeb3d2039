package opencode

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// answer tells what a model said and did, part by part.
func (t *teller) answer(pieces []interop.Record) {
	stepped := false
	for i := range pieces {
		stepped = t.piece(&pieces[i]) || stepped
	}
	switch {
	case t.about == nil:
	case t.waits():
		t.held++ // something may be said
	default:
		t.add(t.rec, t.info.ID, nil)
	}
	usage := t.info.Tokens.usage()
	if cost := costOf(t.info.Cost); !stepped && !t.waits() && (cost > 0 || !usage.IsZero()) {
		it := document.Item{Rec: *t.rec, Part: 1, Name: "spent " + t.info.ID, At: t.at, Cost: cost, Kind: "message"}
		it.Payload = event.StepCompletion{Provider: t.info.Provider, Model: t.info.Model, Usage: usage}
		t.items = append(t.items, it)
	}
	t.failure()
}

// piece tells a part; stepped says that it is the end of a step.
func (t *teller) piece(rec *interop.Record) (stepped bool) {
	p, kind, ok := said(rec.Value)
	switch {
	case ok:
		t.add(rec, p.ID, nil, p)
	case kind == "tool":
		t.tool(rec)
	case kind == "step-finish":
		return t.step(rec)
	default:
		t.items = append(t.items, t.raw(rec, kind))
	}
	return false
}

// add adds a piece of the answer.
func (t *teller) add(rec *interop.Record, name string, part jsontext.Value, said ...event.Part) {
	m := event.Message{
		Role: event.Assistant, Provider: t.info.Provider, Model: t.info.Model, Group: t.info.ID, Parts: said, Extra: t.extra(part),
	}
	t.items = append(t.items, document.Item{Rec: *rec, Name: name, At: t.at, Payload: m, Kind: "part"})
}

// step tells the end of a step.
func (t *teller) step(rec *interop.Record) bool {
	var told struct {
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens tokens  `json:"tokens"`
	}
	if json.Unmarshal(rec.Value, &told) != nil {
		t.items = append(t.items, t.raw(rec, "step-finish"))
		return false
	}
	it := document.Item{Rec: *rec, Name: idOf(rec), At: t.at, Cost: costOf(told.Cost), Kind: "step-finish"}
	it.Payload = event.StepCompletion{
		Provider: t.info.Provider, Model: t.info.Model, StopReason: told.Reason, Usage: told.Tokens.usage(), Extra: rec.Value,
	}
	t.items = append(t.items, it)
	return true
}

func costOf(amount float64) event.Cost {
	cost, err := event.USD(max(0, amount))
	if err != nil {
		return 0
	}
	return cost
}

// toolPart is a call, and its result once it has one.
type toolPart struct {
	ID    string `json:"id"`
	Call  string `json:"callID"`
	Tool  string `json:"tool"`
	State struct {
		Status      string           `json:"status"`
		Input       jsontext.Value   `json:"input"`
		Output      string           `json:"output"`
		Error       string           `json:"error"`
		Time        clock            `json:"time"`
		Attachments []jsontext.Value `json:"attachments"`
		Metadata    struct {
			Interrupted bool `json:"interrupted"`
		} `json:"metadata"`
	} `json:"state"`
}

// tool tells a call and its result.
func (t *teller) tool(rec *interop.Record) {
	var p toolPart
	if json.Unmarshal(rec.Value, &p) != nil || p.Call == "" || p.Tool == "" {
		t.items = append(t.items, t.raw(rec, "tool"))
		return
	}
	var told jsontext.Value
	done := p.State.Status == "completed" || p.State.Status == "error"
	if !done {
		told = rec.Value
	}
	t.add(rec, p.ID, told, event.ToolCall(p.Call, p.Tool, p.State.Input))
	t.items[len(t.items)-1].At = later(t.at, p.State.Time.at())
	if !done {
		return
	}
	t.prune(rec, &p)
	result := event.ToolResult(p.Call, p.Tool, p.content()...)
	result.IsError, result.Interrupted = p.State.Status == "error", p.State.Metadata.Interrupted
	result.Extra = without(rec.Value)
	name := ""
	if p.ID != "" {
		name = "result " + p.ID
	}
	t.items = append(t.items, document.Item{
		Rec: *rec, Part: 1, Name: name, At: later(t.at, p.State.Time.end()), Kind: "tool",
		Payload: event.Message{Role: event.Tool, Parts: []event.Part{result}},
	})
}

// content is what a tool said, and what it attached.
func (p *toolPart) content() (all []event.Part) {
	text := p.State.Output
	if p.State.Status == "error" && text == "" {
		text = p.State.Error
	}
	if text != "" {
		all = append(all, event.Text(text))
	}
	for _, v := range p.State.Attachments {
		if a, _, ok := said(v); ok {
			all = append(all, a)
		} else {
			all = append(all, event.Opaque("attachment", v))
		}
	}
	return all
}

// without is a part without what its call and its result say.
func without(v jsontext.Value) jsontext.Value {
	o, err := parts.Open(v)
	if err != nil {
		return nil
	}
	state, err := parts.Open(o.Take("state"))
	if err != nil {
		return nil
	}
	for _, name := range []string{"callID", "tool", "messageID", "sessionID", "type"} {
		o.Take(name)
	}
	for _, name := range []string{"input", "output", "attachments"} {
		state.Take(name)
	}
	o.Put("state", state.Rest())
	return o.Rest()
}

// failure keeps why an answer failed.
func (t *teller) failure() {
	o, err := parts.Open(t.rec.Value)
	if err != nil {
		return
	}
	info, err := parts.Open(o.Peek("info"))
	if v := info.Peek("error"); err == nil && v.Kind() == '{' {
		it := document.Raw(document.Subrecord(t.rec, v), "error")
		it.Name, it.At, it.Part = "error "+t.info.ID, t.at, 2
		t.items = append(t.items, it)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
