package sweagent

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// read returns the session of a trajectory.
func read(f *document.File, rec *records.Record) ([]document.Session, error) {
	o, err := parts.Open(rec.Value)
	if err != nil || !o.Has("history") && !o.Has("trajectory") && !o.Has(attemptsName) {
		return nil, document.ErrShape
	}
	attempts, err := list(rec, &o, attemptsName)
	if err != nil {
		return nil, err
	}
	t, err := translatorOf(rec, &o)
	if err != nil {
		return nil, err
	}
	info := o.Take("info")
	s := document.Session{ID: f.Session(""), Rec: rec, About: event.Session{Agent: "SWE-agent", Extra: o.Rest()}}
	run := configOf(o.Peek("replay_config"))
	s.Totals = spentOf(info)
	s.Totals.Model = run.Agent.Model.Name
	s.About.Title = titles.Of(run.Problem.Text)
	t.model, t.finished = s.Totals.Model, isFinished(info)
	if err := t.translate(); err != nil {
		return nil, err
	}
	if s.Items, err = withAttempts(attempts, bestOf(info), t.items); err != nil {
		return nil, err
	}
	s.About.Title = cmp.Or(s.About.Title, issue(s.Items))
	s.About.CWD = folder(s.Items)
	if len(s.Items) > 0 && info != nil {
		last := document.Raw(document.Subrecord(rec, info), "info")
		last.Anywhere = true
		s.Items = append(s.Items, last)
	}
	return []document.Session{s}, nil
}

// translatorOf takes the history and the steps out of a document or an attempt.
func translatorOf(rec *records.Record, o *parts.Members) (t translator, err error) {
	if t.history, err = list(rec, o, "history"); err != nil {
		return t, err
	}
	t.steps, err = list(rec, o, "trajectory")
	return t, err
}

// list takes a list out of the document; a missing list is empty.
func list(rec *records.Record, o *parts.Members, name string) ([]records.Record, error) {
	v := o.Take(name)
	if v == nil || v.Kind() == 'n' {
		return nil, nil
	}
	return document.Elements(rec, v)
}

// config is the configuration of the run: its model and its problem.
type config struct {
	Agent struct {
		Model struct {
			Name string `json:"name"`
		} `json:"model"`
	} `json:"agent"`
	Problem struct {
		Text string `json:"text"`
	} `json:"problem_statement"`
}

// configOf parses a configuration: an object, or a text with an object.
func configOf(v jsontext.Value) (c config) {
	if text, ok := rawjson.Text(v); ok {
		v = jsontext.Value(text)
	}
	if len(v) == 0 || json.Unmarshal(v, &c) != nil {
		return config{}
	}
	return c
}

// spentOf returns the tokens and the cost of the run.
func spentOf(info jsontext.Value) (s document.Totals) {
	var fields struct {
		Stats struct {
			Cost     float64 `json:"instance_cost"`
			Sent     int64   `json:"tokens_sent"`
			Received int64   `json:"tokens_received"`
		} `json:"model_stats"`
	}
	if len(info) == 0 || json.Unmarshal(info, &fields) != nil {
		return s
	}
	cost, err := event.USD(fields.Stats.Cost)
	if err == nil {
		s.Cost = cost
	}
	s.Usage = event.Usage{InputTokens: max(0, fields.Stats.Sent), OutputTokens: max(0, fields.Stats.Received)}
	return s
}

// isFinished reports whether the run has ended.
func isFinished(info jsontext.Value) bool {
	o, err := parts.Open(info)
	return err == nil && o.Maybe("exit_status") != ""
}

// issue returns the title of the issue in the first user message.
func issue(items []document.Item) string {
	for i := range items {
		m, ok := items[i].Payload.(event.Message)
		if !ok || m.Role != event.User {
			continue
		}
		if _, text, found := strings.Cut(m.Text(), "\nISSUE:\n"); found {
			return titles.Of(text)
		}
		return ""
	}
	return ""
}

// folder is the working folder at the start: the first one that a message to the agent tells.
func folder(items []document.Item) string {
	for i := range items {
		m, ok := items[i].Payload.(event.Message)
		if !ok || m.Role != event.User && m.Role != event.Tool {
			continue
		}
		if demo, ok, _ := rawjson.Lookup(m.Extra, "is_demo"); ok && demo.Kind() == 't' {
			continue
		}
		text := m.Text()
		for _, r := range m.ToolResults() {
			text += event.Message{Parts: r.Content}.Text()
		}
		if name := stateOf(text, "Current directory"); strings.HasPrefix(name, "/") {
			return name
		}
	}
	return ""
}
