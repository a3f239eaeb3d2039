package opencode

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// toolPart is a call, with its result if it has one.
type toolPart struct {
	ID    string `json:"id"`
	Call  string `json:"callID"`
	Tool  string `json:"tool"`
	State struct {
		Status      string           `json:"status"`
		Input       jsontext.Value   `json:"input"`
		Output      *string          `json:"output"`
		Error       string           `json:"error"`
		Time        clock            `json:"time"`
		Attachments []jsontext.Value `json:"attachments"`
		Metadata    struct {
			Interrupted bool           `json:"interrupted"`
			Exit        jsontext.Value `json:"exit"` // of a command; a number, or null
		} `json:"metadata"`
	} `json:"state"`
}

// addTool adds a call and its result.
func (b *builder) addTool(rec *records.Record) {
	var p toolPart
	if json.Unmarshal(rec.Value, &p) != nil || p.Call == "" || p.Tool == "" || !p.complete() {
		b.items = append(b.items, b.rawPart(rec, "tool"))
		return
	}
	p.ID, p.Call = b.part, b.calls.distinct(p.Call)
	b.until = latest(b.until, p.State.Time.at())
	var part jsontext.Value
	done := p.State.Status == "completed" || p.State.Status == "error"
	if !done {
		part = rec.Value
	}
	b.addPiece(rec, p.ID, part, event.ToolCall(p.Call, p.Tool, p.State.Input))
	if !done {
		return
	}
	b.items[len(b.items)-1].Partial = true
	b.addClearing(rec, &p)
	result := event.ToolResult(p.Call, p.Tool, p.content()...)
	result.IsError = p.State.Status == "error" || exitFailed(p.State.Metadata.Exit)
	result.Interrupted = p.State.Metadata.Interrupted
	result.Extra = toolExtra(rec.Value)
	name := ""
	if p.ID != "" {
		name = "result " + p.ID
	}
	b.items = append(b.items, document.Item{
		Rec: *rec, Part: 1, Partial: true, Name: name, At: latest(b.until, p.State.Time.end()), Kind: "tool",
		Payload: event.Message{Role: event.Tool, Parts: []event.Part{result}},
	})
}

// complete reports whether the part has the members of its state.
func (p *toolPart) complete() bool {
	switch p.State.Status {
	case "completed":
		return p.State.Input != nil && p.State.Output != nil
	case "error":
		return p.State.Input != nil
	case "pending", "running":
		return true
	}
	return false
}

// exitFailed reports whether an exit code is a number other than 0.
func exitFailed(code jsontext.Value) bool { return code.Kind() == '0' && string(code) != "0" }

// content is the output of a tool, with attachments.
func (p *toolPart) content() (all []event.Part) {
	text := ""
	if p.State.Output != nil {
		text = *p.State.Output
	}
	if p.State.Status == "error" && text == "" {
		text = p.State.Error
	}
	if text != "" {
		all = append(all, event.Text(text))
	}
	for _, v := range p.State.Attachments {
		if a, _, ok := contentPart(v); ok {
			all = append(all, a)
		} else {
			all = append(all, event.Opaque("attachment", v))
		}
	}
	return all
}

// toolExtra is a tool part without the members that the call and the result have.
func toolExtra(v jsontext.Value) jsontext.Value {
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
