package sweagent

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/lists"
)

// teller makes items of a history and its steps.
type teller struct {
	history, steps []interop.Record
	model          string
	ended          bool

	messages *lists.Reader
	shell    document.Shell
	items    []document.Item
	next     int // the first step that was not told
	acted    bool
	action   string // the newest, while acted
	// told is what was said since the agent spoke last, as it stands in the history.
	told []string
}

func (t *teller) tell() error {
	values := make([]jsontext.Value, len(t.history))
	for i := range t.history {
		values[i] = t.history[i].Value
	}
	t.messages = lists.NewReader(values, t.model)
	for i := range t.history {
		if err := t.message(&t.history[i]); err != nil {
			return err
		}
	}
	if t.acted {
		t.last()
	}
	for ; t.next < len(t.steps); t.next++ {
		if len(t.history) == 0 {
			t.step(&t.steps[t.next])
		}
		t.items = append(t.items, document.Raw(t.steps[t.next], "step"))
	}
	return nil
}

// message tells a message of the history, and before the agent speaks the step
// that is done.
func (t *teller) message(rec *interop.Record) error {
	o, err := parts.Open(rec.Value)
	if err != nil {
		t.items = append(t.items, document.Raw(*rec, "message"))
		return nil
	}
	if t.acted && speaker(&o) == event.Assistant {
		t.stepDone()
	}
	m, ok, err := t.messages.Message(withID(&o, rec.Value))
	if err != nil {
		return err
	}
	if !ok {
		t.items = append(t.items, document.Raw(*rec, "message"))
		return nil
	}
	t.told = append(t.told, m.Text())
	for _, r := range m.ToolResults() {
		t.told = append(t.told, event.Message{Parts: r.Content}.Text())
	}
	demo := o.Peek("is_demo").Kind() == 't'
	switch m.Role {
	case event.Assistant:
		t.speaks(&m, &o)
		t.acted = !demo && (t.shell.Open() || len(m.ToolCalls()) > 0)
	case event.User:
		if t.shell.Open() {
			t.shell.Result(&m)
		}
	}
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "message"})
	return nil
}

func speaker(o *parts.Members) event.Role {
	role := o.PeekText("role")
	return event.Role(role)
}

// stepDone tells the step of the newest action, and those before it that led to
// nothing in the history.
func (t *teller) stepDone() {
	t.acted = false
	for at := t.stepOf(t.action); t.next <= at; t.next++ {
		t.rest(&t.steps[t.next], t.next == at)
	}
}

// rest keeps what a step tells beyond the history, which told of it if it did.
func (t *teller) rest(rec *interop.Record, told bool) {
	o, err := parts.Open(rec.Value)
	if err != nil || !told {
		t.items = append(t.items, document.Raw(*rec, "step"))
		return
	}
	for _, name := range []string{"action", "thought", "response", "observation"} {
		text, ok := rawjson.Text(o.Peek(name))
		if ok && slices.ContainsFunc(t.told, func(said string) bool { return strings.Contains(said, text) }) {
			o.Take(name)
		}
	}
	if left := o.Rest(); left != nil {
		t.items = append(t.items, document.Raw(document.Subrecord(rec, left), "step"))
	}
}

// stepOf is the number of the first step with an action that was not told; -1 if
// there is none.
func (t *teller) stepOf(action string) int {
	for i := t.next; i < len(t.steps); i++ {
		o, err := parts.Open(t.steps[i].Value)
		if text := o.PeekText("action"); err == nil && strings.TrimSpace(text) == strings.TrimSpace(action) {
			return i
		}
	}
	return -1
}

// last tells the step of the last action, whose observation may stand there alone.
func (t *teller) last() {
	if at := t.stepOf(t.action); t.shell.Open() && t.ended && at >= 0 {
		t.observe(&t.steps[at])
	}
	t.stepDone()
}

// speaks tells what the agent thought and did.
func (t *teller) speaks(m *event.Message, o *parts.Members) {
	t.shell.Forget()
	t.told = t.told[:0]
	for _, name := range []string{"content", "thought", "action"} {
		text := o.PeekText(name)
		t.told = append(t.told, text)
	}
	action := o.PeekText("action")
	t.action = action
	if thought, ok := rawjson.Text(o.Peek("thought")); ok && action != "" && len(m.ToolCalls()) == 0 {
		t.shell.Call(m, thought, action)
	}
	blocks, err := rawjson.Elements(o.Peek("thinking_blocks"))
	if err != nil {
		return
	}
	var thinking []event.Part
	for _, b := range blocks {
		p, _ := (&parts.Reader{}).Block(b) // without Put nothing can fail
		thinking = append(thinking, p)
	}
	m.Parts = append(thinking, m.Parts...)
	m.Extra = without(m.Extra, "thinking_blocks")
}

// withID is a message whose answer to a call is told by the call's id.
func withID(o *parts.Members, v jsontext.Value) jsontext.Value {
	ids, err := rawjson.Elements(o.Peek("tool_call_ids"))
	if err != nil || len(ids) == 0 || speaker(o) != event.Tool || o.Has("tool_call_id") {
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

// step tells what a step says, where there is no history.
func (t *teller) step(rec *interop.Record) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return
	}
	said := o.PeekText("response")
	thought := o.PeekText("thought")
	action := o.PeekText("action")
	m := event.Message{Role: event.Assistant, Model: t.model}
	if said != "" {
		m.Parts = []event.Part{event.Text(said)}
	}
	if strings.TrimSpace(action) != "" {
		t.shell.Call(&m, thought, action)
	}
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "step", Part: 1})
	if t.shell.Open() {
		t.observe(rec)
	}
}

// observe tells what the command of a step printed.
func (t *teller) observe(rec *interop.Record) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return
	}
	m := event.Message{}
	if text := o.PeekText("observation"); text != "" {
		m.Parts = []event.Part{event.Text(text)}
		t.told = append(t.told, text)
	}
	t.shell.Result(&m)
	t.items = append(t.items, document.Item{Rec: *rec, Payload: m, Kind: "step", Part: 2})
}
