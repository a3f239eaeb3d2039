package taubench

import (
	"cmp"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// isResults reports whether a file starts like results of tau2-bench.
func isResults(h head.Head) bool {
	info := h.In("info")
	return h.Has("info") && info.Has("num_trials") && (h.Has("tasks") || h.Has("simulations"))
}

// isSimulation reports whether an object is a simulation of tau2-bench.
func isSimulation(h head.Head) bool {
	return h.Has("id", "task_id") && (h.Has("start_time") || h.Has("termination_reason"))
}

// results are the shared members of a tau2-bench file: the models of the agent and of the
// simulated user, the run and its tasks.
type results struct {
	model string
	user  string
	info  jsontext.Value
	tasks map[string]jsontext.Value
}

// resultsOf parses the shared members.
func resultsOf(o *parts.Members) results {
	r := results{info: o.Peek("info").Clone(), tasks: map[string]jsontext.Value{}}
	var fields struct {
		Agent struct {
			Model string `json:"llm"`
		} `json:"agent_info"`
		User struct {
			Model string `json:"llm"`
		} `json:"user_info"`
	}
	if len(r.info) > 0 && json.Unmarshal(r.info, &fields) == nil {
		r.model, r.user = fields.Agent.Model, fields.User.Model
	}
	tasks, _ := rawjson.Elements(o.Peek("tasks")) // the tasks are optional
	for _, v := range tasks {
		if t, err := parts.Open(v); err == nil {
			r.tasks[plain(t.Peek("id"))] = v.Clone()
		}
	}
	return r
}

// readResults returns the sessions of a tau2-bench file. The simulations of a folder are
// in the next values.
func (r *reader) readResults(f *document.File, rec *records.Record) (all []document.Session, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	if o.Has("id") && o.Has("task_id") {
		return r.results.readSimulations(f, []records.Record{*rec}), nil
	}
	r.results = resultsOf(&o)
	list := o.Take("simulations")
	if list == nil && r.inFolder {
		return nil, nil
	}
	simulations, err := document.Elements(rec, list)
	if err != nil {
		return nil, document.ErrShape
	}
	return r.results.readSimulations(f, simulations), nil
}

// readSimulations returns the sessions of simulations.
func (r *results) readSimulations(f *document.File, simulations []records.Record) (all []document.Session) {
	for i := range simulations {
		s, err := r.simulation(f, &simulations[i])
		if err != nil {
			s = document.Session{Rec: &simulations[i], Rejected: err}
		}
		all = append(all, s)
	}
	return all
}

// minID is the minimum length of a simulation id that can serve as a session id.
const minID = 12

// simulation returns the session of a simulation.
func (r *results) simulation(f *document.File, rec *records.Record) (s document.Session, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || !o.Has("task_id") {
		return s, document.ErrShape
	}
	var fields struct {
		Start string   `json:"start_time"`
		Agent *float64 `json:"agent_cost"`
		User  *float64 `json:"user_cost"`
	}
	if err := json.Unmarshal(rec.Value, &fields); err != nil {
		return s, document.ErrShape
	}
	task, trial := plain(o.Peek("task_id")), plain(o.Peek("trial"))
	s = document.Session{Rec: rec, ID: o.PeekText("id"), Own: task + "/" + trial, Ended: true, At: document.Time(fields.Start)}
	if len(s.ID) < minID || event.CheckSessionID(s.ID) != nil {
		s.ID = f.Inner("task-" + task + "-trial-" + trial)
	}
	if ticks, err := rawjson.Elements(o.Peek("ticks")); err == nil && len(ticks) > 0 {
		return s, errVoice
	}
	s.Totals = document.Totals{Agent: "user simulator", Model: r.user, Cost: costOf(fields.Agent).Add(costOf(fields.User))}
	messages, err := document.Elements(rec, o.Take("messages"))
	if err != nil {
		return s, document.ErrShape
	}
	t := translator{model: r.model, names: map[string]string{}}
	for i := range messages {
		s.Items = append(s.Items, t.item(&messages[i]))
	}
	s.Totals.Usage = t.used
	about := []rawjson.Member{{Name: "simulation", Value: o.Rest()}}
	if v := r.tasks[task]; v != nil {
		about = append(about, rawjson.Member{Name: "task", Value: v})
	}
	if r.info != nil {
		about = append(about, rawjson.Member{Name: "info", Value: r.info})
	}
	s.About = event.Session{Agent: "tau2-bench", Extra: rawjson.NonEmpty(about)}
	return s, nil
}

// errVoice rejects a simulation of a voice, whose ticks hold pieces of speech.
var errVoice = errors.New("the simulation of a voice has ticks, which are not read")

func costOf(dollars *float64) event.Cost {
	if dollars == nil {
		return 0
	}
	cost, err := event.USD(max(0, *dollars))
	if err != nil {
		return 0
	}
	return cost
}

// translator turns the messages of a simulation into items.
type translator struct {
	model string
	names map[string]string // of tools, by call
	used  event.Usage       // by the agent and the simulated user
}

// item converts a message. Results for the simulated user are stored raw, because the
// agent does not see them.
func (t *translator) item(rec *records.Record) document.Item {
	it := document.Raw(*rec, "message")
	o, err := parts.Open(rec.Value)
	if err != nil {
		return it
	}
	it.At = document.Time(o.PeekText("timestamp"))
	role := o.Text("role")
	m := event.Message{Role: event.Role(role)}
	switch m.Role {
	case event.System, event.User:
		if u, ok := parts.Usage(o.Peek("usage")); ok {
			t.used = t.used.Add(u)
		}
		m.Parts = textOf(&o)
	case event.Assistant:
		it.Cost = t.answer(&m, &o)
		t.used = t.used.Add(m.Usage)
	case event.Tool:
		if o.PeekText("requestor") == "user" {
			it.Kind = "user_tool"
			return it
		}
		it.At = cmp.Or(it.At, newestIn(o.Peek("tool_messages")))
		m.Parts = t.results(&o)
	default:
		return it
	}
	if o.Failed || m.Role == event.Tool && len(m.Parts) == 0 {
		return it
	}
	m.Extra = o.Rest()
	it.Payload = m
	return it
}

// newestIn is the newest time of several messages; zero if none has a time.
func newestIn(messages jsontext.Value) (at time.Time) {
	list, err := rawjson.Elements(messages)
	if err != nil {
		return at
	}
	for _, v := range list {
		o, err := parts.Open(v)
		if t := document.Time(o.PeekText("timestamp")); err == nil && t.After(at) {
			at = t
		}
	}
	return at
}

// textOf takes the text of a message; it can be empty.
func textOf(o *parts.Members) []event.Part {
	text, ok := rawjson.Text(o.Peek("content"))
	if v := o.Peek("content"); ok || v.Kind() == 'n' {
		o.Take("content")
	}
	if text == "" {
		return nil
	}
	return []event.Part{event.Text(text)}
}

// answer parses an answer of the agent, with its calls, and returns its cost.
func (t *translator) answer(m *event.Message, o *parts.Members) event.Cost {
	m.Model, m.Parts = t.model, textOf(o)
	calls, err := rawjson.Elements(o.Peek("tool_calls"))
	if err == nil {
		o.Take("tool_calls")
	}
	for _, v := range calls {
		c, err := parts.Open(v)
		p := event.ToolCall(c.Required("id"), c.Required("name"), c.Take("arguments"))
		if err != nil || c.Failed {
			p = event.Opaque("tool_call", v)
		} else {
			t.names[p.CallID] = p.Name
			p.Extra = c.Rest()
		}
		m.Parts = append(m.Parts, p)
	}
	if u, ok := parts.Usage(o.Peek("usage")); ok {
		o.Take("usage")
		m.Usage = u
	}
	var dollars *float64
	if v := o.Take("cost"); len(v) > 0 && json.Unmarshal(v, &dollars) != nil {
		o.Put("cost", v)
	}
	return costOf(dollars)
}

// results parses the results in a tool message: one, or a list.
func (t *translator) results(o *parts.Members) (all []event.Part) {
	several, err := rawjson.Elements(o.Peek("tool_messages"))
	if err != nil {
		return []event.Part{t.result(o)}
	}
	o.Take("tool_messages")
	for _, v := range several {
		one, err := parts.Open(v)
		if err != nil {
			o.Failed = true
			return nil
		}
		p := t.result(&one)
		o.Failed = o.Failed || one.Failed
		one.Take("role")
		p.Extra = one.Rest()
		all = append(all, p)
	}
	return all
}

// result parses the result of a call.
func (t *translator) result(o *parts.Members) event.Part {
	id := o.Required("id")
	p := event.ToolResult(id, t.names[id], textOf(o)...)
	p.IsError = o.Flag("error")
	return p
}
