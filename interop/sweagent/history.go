package sweagent

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// translator turns a history and its steps into items.
type translator struct {
	history, steps []records.Record
	model          string
	finished       bool

	messages *messages.Reader
	shell    document.Shell
	items    []document.Item
	next     int          // index of the first step without items
	pending  bool         // the last action has no step yet
	action   string       // the last action, while pending
	calls    []event.Part // the calls of the last answer without a result
	// recent are the texts in the history since the last answer of the agent.
	recent []string
}

func (t *translator) translate() error {
	values := make([]jsontext.Value, len(t.history))
	for i := range t.history {
		values[i] = t.history[i].Value
	}
	t.messages = messages.NewReader(messages.ShapeOf(slices.Values(values), nil), t.model)
	for i := range t.history {
		if err := t.message(&t.history[i]); err != nil {
			return err
		}
	}
	if t.pending {
		t.lastStep()
	}
	for ; t.next < len(t.steps); t.next++ {
		if len(t.history) == 0 || t.finished && t.isMissing(&t.steps[t.next]) {
			t.step(&t.steps[t.next])
		}
		t.items = append(t.items, document.Raw(t.steps[t.next], "step"))
	}
	return nil
}

// isMissing reports whether the answer of a step is not in the history: the run can end
// before the history gets it.
func (t *translator) isMissing(rec *records.Record) bool {
	o, err := parts.Open(rec.Value)
	response := strings.TrimSpace(o.PeekText("response"))
	if err != nil || response == "" {
		return false
	}
	return !slices.ContainsFunc(t.history, func(h records.Record) bool {
		m, err := parts.Open(h.Value)
		return err == nil && strings.Contains(m.PeekText("content"), response)
	})
}

// message adds a message of the history. Before an answer of the agent, it adds the
// pending step.
func (t *translator) message(rec *records.Record) error {
	o, err := parts.Open(rec.Value)
	if err != nil {
		t.items = append(t.items, document.Raw(*rec, "message"))
		return nil
	}
	if t.pending && roleOf(&o) == event.Assistant {
		t.finishStep()
	}
	m, ok, err := t.messages.Message(withID(&o, rec.Value))
	if err != nil {
		return err
	}
	if !ok {
		t.items = append(t.items, document.Raw(*rec, "message"))
		return nil
	}
	t.recent = append(t.recent, m.Text())
	markRefused(&m, t.calls)
	for _, r := range m.ToolResults() {
		t.calls = slices.DeleteFunc(t.calls, func(c event.Part) bool { return c.CallID == r.CallID })
		t.recent = append(t.recent, event.Message{Parts: r.Content}.Text())
	}
	demo := o.Peek("is_demo").Kind() == 't'
	switch m.Role {
	case event.Assistant:
		t.answer(&m, &o)
		t.calls = m.ToolCalls()
		t.pending = !demo && (t.shell.Open() || len(m.ToolCalls()) > 0)
	case event.User:
		if t.shell.Open() {
			t.shell.Result(&m)
			markRefused(&m, t.calls)
		}
	}
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "message"})
	return nil
}

func roleOf(o *parts.Members) event.Role {
	role := o.PeekText("role")
	return event.Role(role)
}

// finishStep adds the step of the last action, and the steps before it that the
// history lacks.
func (t *translator) finishStep() {
	t.pending = false
	for at := t.findStep(t.action); t.next <= at; t.next++ {
		t.stepRest(&t.steps[t.next], t.next == at)
	}
}

// stepRest stores a step raw. If the step is in the history, members that repeat the
// history are left out.
func (t *translator) stepRest(rec *records.Record, inHistory bool) {
	o, err := parts.Open(rec.Value)
	if err != nil || !inHistory {
		t.items = append(t.items, document.Raw(*rec, "step"))
		return
	}
	for _, name := range []string{"action", "thought", "response", "observation"} {
		text, ok := rawjson.Text(o.Peek(name))
		if ok && slices.ContainsFunc(t.recent, func(s string) bool { return strings.Contains(s, text) }) {
			o.Take(name)
		}
	}
	if left := o.Rest(); left != nil {
		t.items = append(t.items, document.Raw(document.Subrecord(rec, left), "step"))
	}
}

// findStep returns the index of the next step with an action; -1 if there is none.
func (t *translator) findStep(action string) int {
	for i := t.next; i < len(t.steps); i++ {
		o, err := parts.Open(t.steps[i].Value)
		if text := o.PeekText("action"); err == nil && strings.TrimSpace(text) == strings.TrimSpace(action) {
			return i
		}
	}
	return -1
}

// lastStep adds the step of the last action. Its observation can be in the step only.
func (t *translator) lastStep() {
	if at := t.findStep(t.action); t.finished && at >= 0 {
		if t.shell.Open() {
			t.observe(&t.steps[at])
		} else if len(t.calls) == 1 {
			t.observeCall(&t.steps[at], t.calls[0])
		}
	}
	t.finishStep()
}

// answer parses the thought and the action of the agent.
func (t *translator) answer(m *event.Message, o *parts.Members) {
	t.shell.Forget()
	t.recent = t.recent[:0]
	for _, name := range []string{"content", "thought", "action"} {
		text := o.PeekText(name)
		t.recent = append(t.recent, text)
	}
	action := o.PeekText("action")
	t.action = action
	if thought, ok := rawjson.Text(o.Peek("thought")); ok && action != "" && !o.Has("tool_calls") {
		t.shell.Call(m, thought, action)
	}
	blocks, err := rawjson.Elements(o.Peek("thinking_blocks"))
	if err != nil {
		return
	}
	var thinking []event.Part
	for _, b := range blocks {
		p, _ := (&parts.Reader{}).Block(b) // a Reader without Put returns no error
		thinking = append(thinking, p)
	}
	m.Parts = append(thinking, m.Parts...)
	m.Extra = without(m.Extra, "thinking_blocks")
}

// withID adds the call id to a tool message that has a list of call ids.
func withID(o *parts.Members, v jsontext.Value) jsontext.Value {
	ids, err := rawjson.Elements(o.Peek("tool_call_ids"))
	if err != nil || len(ids) == 0 || roleOf(o) != event.Tool || o.Has("tool_call_id") {
		return v
	}
	with, err := parts.Open(v)
	if err != nil {
		return v
	}
	if with.Put("tool_call_id", ids[0]); len(ids) == 1 {
		with.Take("tool_call_ids")
	}
	return with.Rest()
}

func without(object jsontext.Value, name string) jsontext.Value {
	o, err := parts.Open(object)
	if err != nil {
		return object
	}
	o.Take(name)
	return o.Rest()
}

// step adds the messages of a step, for a document without a history.
func (t *translator) step(rec *records.Record) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return
	}
	response := o.PeekText("response")
	thought := o.PeekText("thought")
	action := o.PeekText("action")
	m := event.Message{Role: event.Assistant, Model: t.model}
	if response != "" {
		m.Parts = []event.Part{event.Text(response)}
	}
	if strings.TrimSpace(action) != "" {
		t.shell.Call(&m, thought, action)
	}
	t.calls = m.ToolCalls()
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "step", Part: 1, Partial: true})
	if t.shell.Open() {
		t.observe(rec)
	}
}

// observe adds the output of a step's command.
func (t *translator) observe(rec *records.Record) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return
	}
	m := event.Message{}
	if text := o.PeekText("observation"); text != "" {
		m.Parts = []event.Part{event.Text(text)}
		t.recent = append(t.recent, text)
	}
	t.shell.Result(&m)
	markRefused(&m, t.calls)
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "step", Part: 2, Partial: true})
}

// observeCall adds the output of a step as the result of a call.
func (t *translator) observeCall(rec *records.Record, call event.Part) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return
	}
	result := event.ToolResult(call.CallID, call.Name)
	if text := o.PeekText("observation"); text != "" {
		result.Content = []event.Part{event.Text(text)}
		t.recent = append(t.recent, text)
	}
	m := event.Message{Role: event.Tool, Parts: []event.Part{result}}
	markRefused(&m, []event.Part{call})
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "step", Part: 2, Partial: true})
}
