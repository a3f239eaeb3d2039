// Package taubench imports results of tau-bench and tau2-bench.
//
// # tau-bench
//
// A file is a JSON list with one attempt at a task per element. Each attempt becomes
// a session. The importer makes the session id from the file, the task and the trial.
// An attempt without messages has a session_started only. Its messages, in the shape
// of OpenAI's Chat Completions, become message_added. A tool result that starts with
// "Error:" is an error, as in the benchmark's tools. The extra of session_started
// holds the reward and all members besides the messages. The cost of the simulated
// user becomes a step_completed. The file has no tokens or cost of the agent. An
// invalid attempt is rejected, and so is a truncated list.
//
// # tau2-bench
//
// A file is one JSON document with simulations, a list of simulations or one of them. A
// folder has the file results.json with the run and its tasks, and simulations/<id>.json
// with a simulation each; the import of any of them imports all. Each simulation becomes
// a session with the simulation's id. The extra of session_started holds its task and the
// members about the run. Answers have their own tokens and cost; the tokens of the
// simulated user and the remaining cost become a step_completed. The agent does not see
// the tool calls of the simulated user. These calls stay in the extra, and their results
// are stored raw as "tau-bench:user_tool". A simulation of a voice is rejected.
package taubench

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "tau-bench"

// Format imports trajectories of tau-bench. The zero value is ready for use.
type Format struct{}

// Name returns "tau-bench".
func (Format) Name() string { return formatName }

// Declare gives the run of results, by its time, for all of the run's simulations, or the
// simulation that a file begins with.
// The sessions of a list of attempts are named by the file: no other file has them.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) (owned []string) {
		h := head.Begins(begin)
		switch {
		case isSimulation(h):
			owned = append(owned, h.Text("id"))
		case !head.IsArray(begin):
			owned = append(owned, "tau-bench:"+h.Text("timestamp"))
		}
		files, _ := simulationsOf(src.Name) // the import reports the error
		for _, path := range files {
			owned = append(owned, strings.TrimSuffix(filepath.Base(path), ".json"))
		}
		return owned
	})
}

// Detect checks for the members of an attempt, or of tau2-bench results.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Begins(begin)
	if isSimulation(h) {
		return true
	}
	if !head.IsArray(begin) {
		return isResults(h)
	}
	return h.Has("task_id", "reward") && (h.Has("info") || h.Has("traj"))
}

// Import appends the events of the source that are not in the log yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	files, err := simulationsOf(src.Name)
	if err != nil {
		return interop.Result{}, err
	}
	r := reader{inFolder: len(files) > 0}
	return document.ImportRecords(ctx, log, src, formatName, recordsOf(src, files), r.read)
}

// reader reads the values of a file, and of the files of its folder.
type reader struct {
	results  results
	inFolder bool
}

// read returns the sessions of a list of attempts, or of tau2-bench results.
func (r *reader) read(f *document.File, rec *records.Record) (all []document.Session, err error) {
	if rec.Value.Kind() == '{' {
		return r.readResults(f, rec)
	}
	attempts, err := document.Elements(rec, rec.Value)
	if err != nil {
		return nil, document.ErrShape
	}
	if len(attempts) > 0 && isSimulation(head.Object(attempts[0].Value)) {
		return r.results.readSimulations(f, attempts), nil
	}
	for i := range attempts {
		s, err := attempt(f, &attempts[i])
		if err != nil {
			s = document.Session{Rec: &attempts[i], Rejected: err}
		}
		all = append(all, s)
	}
	return all, nil
}

// attempt returns the session of an attempt.
func attempt(f *document.File, rec *records.Record) (s document.Session, err error) {
	o, err := parts.Open(rec.Value)
	if err != nil || !o.Has("task_id") {
		return s, document.ErrShape
	}
	task, trial := plain(o.Peek("task_id")), plain(o.Peek("trial"))
	s.Ended = true // the benchmark writes an attempt after its end
	s.Rec, s.ID = rec, f.Inner("task-"+task+"-trial-"+trial)
	s.Own = task + "/" + trial
	s.Totals = document.Totals{Agent: "user simulator", Cost: userCost(o.Peek("info"))}
	messages, err := document.Elements(rec, o.Take("traj"))
	if err != nil {
		return s, document.ErrShape
	}
	s.About = event.Session{Agent: formatName, Extra: o.Rest()}
	s.Items, err = items(messages)
	return s, err
}

// plain returns a number or a text for use in an id.
func plain(v jsontext.Value) string {
	if text, ok := rawjson.Text(v); ok {
		return text
	}
	if v.Kind() != '0' {
		return "0"
	}
	return string(v)
}

// userCost returns the cost of the simulated user.
func userCost(info jsontext.Value) event.Cost {
	var fields struct {
		Cost float64 `json:"user_cost"`
	}
	if info.Kind() != '{' || json.Unmarshal(info, &fields) != nil {
		return 0
	}
	cost, err := event.USD(max(0, fields.Cost))
	if err != nil {
		return 0
	}
	return cost
}

// items turns messages into items.
func items(list []records.Record) (all []document.Item, err error) {
	values := make([]jsontext.Value, 0, len(list))
	for i := range list {
		values = append(values, list[i].Value)
	}
	reader := messages.NewReader(messages.ShapeOf(slices.Values(values), nil), "")
	for i := range list {
		m, ok, err := reader.Message(list[i].Value)
		if err != nil {
			return nil, err
		}
		it := document.Raw(list[i], "message")
		if ok {
			markErrors(&m)
			it.Payload = m
		}
		all = append(all, it)
	}
	return all, nil
}

// markErrors marks the results of tools that failed.
func markErrors(m *event.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		content := event.Message{Parts: p.Content}
		if p.Type == event.ToolResultPart && strings.HasPrefix(content.Text(), "Error:") {
			p.IsError = true
		}
	}
}
