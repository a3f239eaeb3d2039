package minisweagent

import (
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// read returns the session of a trajectory: a document, or a list of messages.
func read(f *document.File, rec *records.Record) ([]document.Session, error) {
	s := document.Session{ID: f.Session(""), Rec: rec, About: event.Session{Agent: "mini-SWE-agent"}}
	list, info := rec.Value, jsontext.Value(nil)
	if list.Kind() == '{' {
		o, err := parts.Open(rec.Value)
		if err != nil || !o.Has("messages") {
			return nil, document.ErrShape
		}
		list, info = o.Take("messages"), o.Take("info")
		if s.Own = o.PeekText("instance_id"); s.Own != "" {
			s.ID = f.Session(s.Own)
		}
		s.Version = o.PeekText("trajectory_format")
		s.About.Extra = o.Rest()
	}
	messages, err := document.Elements(rec, list)
	if err != nil {
		return nil, err
	}
	s.Numbered = s.Own == "" && filepath.Base(f.Path) == defaultFile
	s.Totals = spentOf(info)
	t := newTranslator(messages, s.Totals.Model)
	if err := t.translate(); err != nil {
		return nil, err
	}
	if s.Items = t.items; len(s.Items) > 0 && info != nil {
		last := document.Raw(document.Subrecord(rec, info), "info")
		last.Anywhere = true
		s.Items = append(s.Items, last)
	}
	return []document.Session{s}, nil
}

// defaultFile is the default file of a run. Every run overwrites it, and becomes a session
// of its own.
const defaultFile = "last_mini_run.traj.json"

// spentOf returns the model and the cost of the run.
func spentOf(info jsontext.Value) (s document.Totals) {
	var fields struct {
		Stats struct {
			Cost float64 `json:"instance_cost"`
		} `json:"model_stats"`
		Config struct {
			Model struct {
				Name string `json:"model_name"`
			} `json:"model"`
		} `json:"config"`
	}
	if len(info) == 0 || json.Unmarshal(info, &fields) != nil {
		return s
	}
	s.Cost, _ = event.USD(fields.Stats.Cost) // zero for an invalid amount
	s.Model = fields.Config.Model.Name
	return s
}

// translator turns messages into items.
type translator struct {
	list  []records.Record
	read  *messages.Reader
	shell document.Shell
	items []document.Item
	runs  int // responses without an id so far
}

func newTranslator(list []records.Record, model string) *translator {
	values := make([]jsontext.Value, 0, len(list))
	for i := range list {
		values = append(values, list[i].Value)
	}
	return &translator{list: list, read: messages.NewReader(messages.ShapeOf(slices.Values(values), nil), model)}
}

func (t *translator) translate() error {
	for i := range t.list {
		rec := &t.list[i]
		o, err := parts.Open(rec.Value)
		if err != nil {
			t.items = append(t.items, document.Raw(*rec, "message"))
			continue
		}
		if output, err := document.Elements(rec, o.Peek("output")); err == nil && !o.Has("role") {
			err = t.response(rec, &o, output)
			if err != nil {
				return err
			}
			continue
		}
		if err := t.message(rec, &o); err != nil {
			return err
		}
	}
	return nil
}

// message adds a message.
func (t *translator) message(rec *records.Record, o *parts.Members) error {
	m, ok, err := t.read.Message(rec.Value)
	if err != nil {
		return err
	}
	if !ok {
		t.items = append(t.items, document.Raw(*rec, kindOf(o)))
		return nil
	}
	x := extraOf(o.Peek("extra"))
	it := document.Item{Rec: *rec, At: x.at, Kind: "message", Cost: x.cost}
	switch {
	case m.Role == event.Assistant:
		if m.Usage.IsZero() {
			m.Usage = x.usage
		}
		t.addCommand(&m, x)
	case m.Role == event.User && t.shell.Open():
		t.shell.Result(&m)
	}
	markFailure(&m, x)
	it.Payload = m
	t.items = append(t.items, it)
	return nil
}

// kindOf returns the kind of an object that is not a message: its role or its type.
func kindOf(o *parts.Members) string {
	for _, name := range []string{"role", "type"} {
		if kind := o.PeekText(name); kind != "" {
			return kind
		}
	}
	return "message"
}

// addCommand turns the command of an answer into a call.
func (t *translator) addCommand(m *event.Message, x extra) {
	t.shell.Forget()
	if len(m.ToolCalls()) > 0 {
		return
	}
	if text, command, ok := commandIn(m.Text(), x.commands); ok {
		t.shell.Call(m, text, command)
	}
}

// response adds a response of the Responses API, one message per item. The first
// message gets the token counts and the cost.
func (t *translator) response(rec *records.Record, o *parts.Members, output []records.Record) error {
	x := extraOf(o.Peek("extra"))
	id, run := o.Maybe("id"), 0
	if id == "" {
		t.runs++
		run = t.runs
	}
	usage, ok := parts.Usage(o.Peek("usage"))
	if !ok {
		usage = x.usage
	}
	o.Take("output")
	model := o.PeekText("model")
	for i := range output {
		m, ok, err := t.read.Message(output[i].Value)
		if err != nil {
			return err
		}
		if !ok {
			t.items = append(t.items, document.Raw(output[i], "item"))
			continue
		}
		it := document.Item{Rec: output[i], At: x.at, Kind: "item"}
		if m.Role == event.Assistant {
			m.Group, m.ResponseID, m.Usage, it.Cost, it.Run = id, id, usage, x.cost, run
			if usage, x.cost = (event.Usage{}), 0; model != "" {
				m.Model = model
			}
		}
		it.Payload = m
		t.items = append(t.items, it)
	}
	t.items = append(t.items, document.Raw(document.Subrecord(rec, o.Rest()), "response"))
	return nil
}
