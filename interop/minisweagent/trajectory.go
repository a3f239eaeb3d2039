package minisweagent

import (
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/lists"
)

// read reads a trajectory: a document, or a list of messages.
func read(f *document.File, rec *interop.Record) ([]document.Session, error) {
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
	if s.Own == "" && filepath.Base(f.Path) == lastRun {
		s.ID = f.Inner(taskOf(messages))
	}
	s.Totals = spentOf(info)
	t := newTeller(messages, s.Totals.Model)
	if err := t.tell(); err != nil {
		return nil, err
	}
	if s.Items = t.items; len(s.Items) > 0 && info != nil {
		last := document.Raw(document.Subrecord(rec, info), "info")
		last.Name = "info " + string(last.Rec.Digest)
		s.Items = append(s.Items, last)
	}
	return []document.Session{s}, nil
}

// lastRun is the file that every run is written to unless another is named.
const lastRun = "last_mini_run.traj.json"

// taskOf tells runs apart by what they begin with: the system's words and the task.
func taskOf(messages []interop.Record) string {
	const most = 2
	said := ""
	for _, m := range messages[:min(len(messages), most)] {
		o, err := parts.Open(m.Value)
		if err == nil {
			said += string(event.DigestOf(o.Peek("content")))
		}
	}
	return event.DigestOf([]byte(said)).Hex()[:8]
}

// spentOf reads what the run took, and by which model.
func spentOf(info jsontext.Value) (s document.Totals) {
	var told struct {
		Stats struct {
			Cost float64 `json:"instance_cost"`
		} `json:"model_stats"`
		Config struct {
			Model struct {
				Name string `json:"model_name"`
			} `json:"model"`
		} `json:"config"`
	}
	if len(info) == 0 || json.Unmarshal(info, &told) != nil {
		return s
	}
	s.Cost, _ = event.USD(told.Stats.Cost) // none, where it is no amount
	s.Model = told.Config.Model.Name
	return s
}

// teller makes items of messages.
type teller struct {
	list  []interop.Record
	read  *lists.Reader
	shell document.Shell
	items []document.Item
}

func newTeller(list []interop.Record, model string) *teller {
	values := make([]jsontext.Value, 0, len(list))
	for i := range list {
		values = append(values, list[i].Value)
	}
	return &teller{list: list, read: lists.NewReader(values, model)}
}

func (t *teller) tell() error {
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

// message tells a message.
func (t *teller) message(rec *interop.Record, o *parts.Members) error {
	m, ok, err := t.read.Message(rec.Value)
	if err != nil {
		return err
	}
	if !ok {
		t.items = append(t.items, document.Raw(*rec, kindOf(o)))
		return nil
	}
	told := extraOf(o.Peek("extra"))
	it := document.Item{Rec: *rec, At: told.at, Kind: "message", Cost: told.cost}
	switch {
	case m.Role == event.Assistant:
		if m.Usage.IsZero() {
			m.Usage = told.usage
		}
		t.acts(&m, told)
	case m.Role == event.User && t.shell.Open():
		t.shell.Result(&m)
	}
	it.Payload = m
	t.items = append(t.items, it)
	return nil
}

// kindOf names what is no message: by its role, or its type.
func kindOf(o *parts.Members) string {
	for _, name := range []string{"role", "type"} {
		if kind := o.PeekText(name); kind != "" {
			return kind
		}
	}
	return "message"
}

// acts makes a command in an answer a call.
func (t *teller) acts(m *event.Message, told extra) {
	t.shell.Forget()
	if len(m.ToolCalls()) > 0 {
		return
	}
	if said, command, ok := commandIn(m.Text(), told.commands); ok {
		t.shell.Call(m, said, command)
	}
}

// response tells a response of Responses, a message for each of its items. The
// first has what it took, and what is told of it.
func (t *teller) response(rec *interop.Record, o *parts.Members, output []interop.Record) error {
	told := extraOf(o.Peek("extra"))
	id := o.Maybe("id")
	if id == "" {
		id = string(rec.Digest)
	}
	usage, ok := lists.UsageOf(o.Peek("usage"))
	if !ok {
		usage = told.usage
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
		it := document.Item{Rec: output[i], At: told.at, Kind: "item"}
		if m.Role == event.Assistant {
			m.Group, m.ResponseID, m.Usage, it.Cost = id, id, usage, told.cost
			if usage, told.cost = (event.Usage{}), 0; model != "" {
				m.Model = model
			}
		}
		it.Payload = m
		t.items = append(t.items, it)
	}
	t.items = append(t.items, document.Raw(document.Subrecord(rec, o.Rest()), "response"))
	return nil
}
