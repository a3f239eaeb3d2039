// Package openhands imports what OpenHands leaves behind: the output of an
// evaluation, a JSON object with a history of events on each line; trajectories, a
// JSON list of events, or an object that holds one; and conversations, an event in
// each file of a folder "events", or on each line of a file.
//
// Events are actions and observations, or, of the software agent SDK, name their
// kind. The system's and the user's messages become message_added, and so do those
// of the agent. An action that a tool call led to becomes the call, behind what the
// model said with it; several calls of one response are one group, which has its
// tokens and its cost. Actions of the agent without a call, as of older versions,
// become a call named by the action. The observation of a call becomes its result:
// an error where it says so, a command failed, or the user did not want it. A
// condensation becomes a compaction_triggered, which takes the place of the one
// before. All else, such as changes of state, errors that nothing was called for,
// recalled knowledge and requests, is kept raw as
// "openhands:<action, observation or kind>".
//
// Tokens and cost that the metrics tell beyond those of single responses become a
// step_completed. What stands around the history is in the extra of
// session_started. A session is named by the instance, with digits of the file's
// path, or by the file. What is cut off is refused; lines before it are imported.
//
// # Conversations
//
// A conversation is a session named by its folder, if the name is long enough to be
// its alone. It is imported as one file: base_state.json beside the folder of its
// events, or that of the first event, stands for all, which are its lines in their
// order. Of the state, the model and the working directory are taken, and no more:
// it holds settings that may be secret. A title comes with the user's first words.
package openhands

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/parts"
)

// Name is the name of the format.
const Name = "openhands"

// Format imports what OpenHands leaves behind. The zero value is ready for use.
type Format struct{}

// Name is "openhands".
func (Format) Name() string { return Name }

// Declare gives the conversation of a file in a conversation's folder. The file of
// an event needs the event before it, where no file represents both and the name is
// the event's number alone. Other names sort by number.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	name := conversation(src.Name)
	if name == "" {
		return ids
	}
	f := document.NewFile(src)
	ids.Owns = []string{sessionOf(&f, name)}
	n, ok := numberOf(src.Name)
	if !ok || first(src.Name) == src.Name || filepath.Base(src.Name) != strconv.Itoa(n)+".json" {
		return ids
	}
	ids.Owns = append(ids.Owns, eventID(src.Name, n))
	if before, ok := numberBefore(filepath.Dir(src.Name), n); ok {
		ids.Needs = []string{eventID(src.Name, before)}
	}
	return ids
}

// eventID is the id of an event in the folder of a file.
func eventID(path string, n int) string {
	return "openhands:" + filepath.Dir(path) + "/" + strconv.Itoa(n)
}

// Detect looks for an event, or for what an evaluation begins with.
func (Format) Detect(name string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return isEvent(h)
	}
	for _, list := range listNames {
		if h.Has(list) {
			return isEvent(h.In(list))
		}
	}
	if filepath.Base(name) == stateName {
		return h.Has("id", "agent")
	}
	return isAlone(h) || h.Has("instance_id", "test_result")
}

// listNames are the members that hold events.
var listNames = []string{"history", "trajectory"}

func isEvent(h head.Head) bool {
	return h.Has("source", "timestamp") && (h.Has("action") || h.Has("observation") || h.Has("message") || h.Has("id") && isOfKind(h))
}

// isAlone reports whether a value is an event, which others may be like.
func isAlone(h head.Head) bool {
	switch h.Text("source") {
	case "agent", "user", "environment", "hook":
		return h.Has("id", "timestamp") && (h.Has("action", "args") || h.Has("observation", "content") || isOfKind(h))
	}
	return false
}

// isOfKind looks for what events of the software agent SDK have. Their kind stands
// behind all else.
func isOfKind(h head.Head) bool {
	for _, name := range []string{"kind", "system_prompt", "llm_message", "thought"} {
		if h.Has(name) {
			return true
		}
	}
	return false
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	src, err := gather(src)
	if err != nil {
		return interop.Result{}, err
	}
	var r reader
	return document.Import(ctx, log, src, Name, r.read)
}

// reader reads the values of a file.
type reader struct {
	model string // of a conversation, once its state tells it
}

// read reads an instance of an evaluation, a list of events, or an event.
func (r *reader) read(f *document.File, rec *interop.Record) ([]document.Session, error) {
	s := document.Session{ID: f.Session(""), Rec: rec, About: event.Session{Agent: "OpenHands"}}
	list := rec.Value
	var told facts
	if list.Kind() == '{' {
		o, err := parts.Open(rec.Value)
		if err != nil {
			return nil, document.ErrShape
		}
		if isOne(&o) {
			return []document.Session{r.alone(f, rec)}, nil
		}
		if filepath.Base(f.Path) == stateName && o.Has("agent") {
			return []document.Session{r.state(f, rec, &o)}, nil
		}
		if list = takeList(&o); list == nil {
			return nil, document.ErrShape
		}
		told = factsOf(rec.Value)
		if s.Own = told.Instance; s.Own != "" {
			s.ID = f.Session(s.Own)
		}
		s.About = event.Session{Agent: cmp.Or(told.Metadata.Agent, "OpenHands"), Title: interop.Title(told.Task.Statement), Extra: o.Rest()}
	}
	events, err := document.Elements(rec, list)
	if err != nil {
		return nil, err
	}
	t := teller{model: told.Metadata.Model.Name, used: told.used(), answered: map[string]bool{}, calls: map[string]call{}}
	if err := t.all(events); err != nil {
		return nil, err
	}
	s.Items, s.Spent = t.items, told.spent()
	if s.Spent.Cost == 0 && s.Spent.Usage.IsZero() {
		s.Spent = t.stats
	}
	return []document.Session{s}, nil
}

func takeList(o *parts.Members) jsontext.Value {
	for _, name := range listNames {
		if v := o.Take(name); v.Kind() == '[' {
			return v
		}
	}
	return nil
}

// facts are what is told around the history.
type facts struct {
	Instance string `json:"instance_id"`
	Task     struct {
		Statement string `json:"problem_statement"`
	} `json:"instance"`
	Metadata struct {
		Agent string `json:"agent_class"`
		Model struct {
			Name string `json:"model"`
		} `json:"llm_config"`
	} `json:"metadata"`
	Metrics metrics `json:"metrics"`
}

// metrics are what models took.
type metrics struct {
	Cost   float64 `json:"accumulated_cost"`
	Total  tokens  `json:"accumulated_token_usage"`
	Tokens []struct {
		tokens
		Response string `json:"response_id"`
	} `json:"token_usages"`
}

func (m *metrics) cost() event.Cost {
	cost, err := event.USD(max(0, m.Cost))
	if err != nil {
		return 0
	}
	return cost
}

// factsOf reads what is told; members that are not what they should be are not
// told.
func factsOf(v jsontext.Value) (f facts) {
	members, err := rawjson.Members(v)
	if err != nil {
		return f
	}
	for _, m := range members {
		one, next := rawjson.NonEmpty([]rawjson.Member{m}), f
		if json.Unmarshal(one, &next) == nil {
			f = next
		}
	}
	return f
}

// tokens are the counts of a response, or of all of them. Those read from a cache
// or written to it are in the prompt.
type tokens struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Read       int64 `json:"cache_read_tokens"`
	Written    int64 `json:"cache_write_tokens"`
}

func (c tokens) usage() event.Usage {
	read, written := max(0, c.Read), max(0, c.Written)
	return event.Usage{
		InputTokens: max(0, c.Prompt-read-written), OutputTokens: max(0, c.Completion), CacheReadTokens: read, CacheWriteTokens: written,
	}
}

// used are the tokens of responses, by their ids.
func (f *facts) used() map[string]event.Usage {
	used := map[string]event.Usage{}
	for _, u := range f.Metrics.Tokens {
		used[u.Response] = used[u.Response].Add(u.usage())
	}
	delete(used, "")
	return used
}

func (f *facts) spent() document.Spent {
	return document.Spent{Model: f.Metadata.Model.Name, Usage: f.Metrics.Total.usage(), Cost: f.Metrics.cost()}
}
