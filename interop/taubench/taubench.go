// Package taubench imports what tau-bench and tau2-bench leave behind.
//
// The trajectories of tau-bench are a JSON list with one attempt at a task in each element, whose messages have the shape
// of OpenAI's Chat Completions.
//
// Each attempt is a session, named by the file, the task and the trial; one without
// messages only has a start. Its messages become message_added; a tool's answer
// that begins with "Error:" is an error, as the benchmark's tools have it. The
// reward and all else that stands around the messages are in the extra of
// session_started. What the simulated user cost becomes a step_completed; of the
// agent neither tokens nor cost are told. An element that is no attempt is refused,
// and so is a list that is cut off.
//
// The results of tau2-bench, one document, hold simulations: each is a session of
// its id, with its task and what is told of the run in the extra of session_started.
// Tokens and cost are those of the messages; what the simulation cost beyond them
// becomes a step_completed. What the simulated user does with tools of its own, which
// the agent is not shown, stays in the extra, and is kept raw as
// "tau-bench:user_tool".
package taubench

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/lists"
)

// Name is the name of the format.
const Name = "tau-bench"

// Format imports trajectories of tau-bench. The zero value is ready for use.
type Format struct{}

// Name is "tau-bench".
func (Format) Name() string { return Name }

// Declare gives the run of results, by its time, for all of the run's simulations.
// The sessions of a list of attempts are named by the file: no other file has them.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err == nil && !head.IsArray(begin) {
		ids.Owns = []string{"tau-bench:" + head.Begins(begin).Text("timestamp")}
	}
	return ids
}

// Detect looks for the members that an attempt has.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Begins(begin)
	if !head.IsArray(begin) {
		return isResults(h)
	}
	return h.Has("task_id", "reward") && (h.Has("info") || h.Has("traj"))
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, Name, read)
}

// read reads a list of attempts.
func read(f *document.File, rec *interop.Record) (all []document.Session, err error) {
	if rec.Value.Kind() == '{' {
		return readResults(f, rec)
	}
	attempts, err := document.Elements(rec, rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	for i := range attempts {
		s, err := attempt(f, &attempts[i])
		if err != nil {
			s = document.Session{Rec: &attempts[i], Refused: err}
		}
		all = append(all, s)
	}
	return all, nil
}

// attempt reads an attempt at a task.
func attempt(f *document.File, rec *interop.Record) (s document.Session, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || !o.Has("task_id") {
		return s, document.ErrShape
	}
	task, trial := plain(o.Peek("task_id")), plain(o.Peek("trial"))
	s.Over = true // attempts are written when they have ended
	s.Rec, s.ID = rec, f.Inner("task-"+task+"-trial-"+trial)
	s.Own = task + "/" + trial
	s.Spent = document.Spent{Agent: "user simulator", Cost: userCost(o.Peek("info"))}
	messages, err := document.Elements(rec, o.Take("traj"))
	if err != nil {
		return s, document.ErrShape
	}
	s.About = event.Session{Agent: Name, Extra: o.Rest()}
	s.Items, err = items(messages)
	return s, err
}

// plain is a number or a text as it is part of a name.
func plain(v jsontext.Value) string {
	if text, ok := rawjson.Text(v); ok {
		return text
	}
	if v.Kind() != '0' {
		return "0"
	}
	return string(v)
}

// userCost is what the simulated user cost.
func userCost(info jsontext.Value) event.Cost {
	var told struct {
		Cost float64 `json:"user_cost"`
	}
	if info.Kind() != '{' || json.Unmarshal(info, &told) != nil {
		return 0
	}
	cost, err := event.USD(max(0, told.Cost))
	if err != nil {
		return 0
	}
	return cost
}

// items makes items of messages.
func items(messages []interop.Record) (all []document.Item, err error) {
	values := make([]jsontext.Value, 0, len(messages))
	for i := range messages {
		values = append(values, messages[i].Value)
	}
	reader := lists.NewReader(values, "")
	for i := range messages {
		m, ok, err := reader.Message(messages[i].Value)
		if err != nil {
			return nil, err
		}
		it := document.Raw(messages[i], "message")
		if ok {
			failures(&m)
			it.Payload = m
		}
		all = append(all, it)
	}
	return all, nil
}

// failures marks the answers of tools that failed.
func failures(m *event.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		said := event.Message{Parts: p.Content}
		if p.Type == event.ToolResultPart && strings.HasPrefix(said.Text(), "Error:") {
			p.IsError = true
		}
	}
}
