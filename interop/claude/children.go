package claude

import (
	"cmp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// task is a call that starts a sub-agent.
type task struct {
	id, prompt, title, agent string
	seq                      int64
}

// child is the state of a sub-agent in the calling session.
type child struct {
	session string // empty while unknown
	ended   bool
}

// indexChild indexes a child event.
func (s *session) indexChild(c *event.Child) {
	known := s.children[c.ChildID]
	if known == nil {
		known = &child{}
		s.children[c.ChildID] = known
	}
	known.session = cmp.Or(c.ChildSessionID, known.session)
	switch c.State {
	case event.ChildCompleted, event.ChildFailed, event.ChildCanceled:
		known.ended = true
	}
}

// claim finds the call that started the sub-agent of session side: a call whose child
// event names the session, or else a call with the same prompt. If the file has both
// sessions, the call must come before the first line of the sub-agent.
func (s *session) claim(side, prompt string, claimed map[string]bool) task {
	for _, t := range s.tasks {
		if c := s.children[t.id]; c != nil && c.session == side && !claimed[t.id] {
			return t
		}
	}
	for _, t := range s.tasks {
		if t.prompt == prompt && prompt != "" && !claimed[t.id] && (!s.seen || t.seq <= s.lastRead) {
			return t
		}
	}
	return task{}
}

// taskOf parses a call; ok is false if it does not start a sub-agent.
func taskOf(call event.Part) (t task, ok bool) {
	if call.Name != "Task" && call.Name != "Agent" {
		return t, false
	}
	var arguments struct {
		Prompt      text `json:"prompt"`
		Description text `json:"description"`
		Agent       text `json:"subagent_type"`
	}
	if json.Unmarshal(call.Arguments, &arguments) != nil {
		return t, false
	}
	return task{
		id: call.CallID, prompt: string(arguments.Prompt), agent: string(arguments.Agent),
		title: cmp.Or(string(arguments.Description), opening{text: string(arguments.Prompt)}.title()),
	}, true
}

// addChildren appends child events after a record: sub-agents that it calls, sessions
// that it names, and sub-agents that it ends.
func (im *importer) addChildren(s *session, rec *records.Record, f *facts, at time.Time, m *event.Message) error {
	children := []event.Child{}
	if m != nil {
		children = append(s.requestedChildren(m), s.answeredChildren(f, m)...)
	}
	children = append(children, s.childOfRecord(f, m)...)
	for i, c := range children {
		e, err := rec.Event(childPart+i, c)
		if err == nil {
			err = im.mark(&e)
		}
		if err != nil {
			return err
		}
		s.tree.extend(s.Join(childKey(&c), at, e))
		s.indexChild(&c)
	}
	return nil
}

// childKey is the key of a child event. The session has each state of a sub-agent once.
func childKey(c *event.Child) sessions.Key {
	name := string(c.EventType())
	switch c.State {
	case event.ChildCompleted, event.ChildFailed, event.ChildCanceled:
		name = "child_ended"
	}
	return sessions.Key{Own: name + " " + c.ChildID, Part: childPart}
}

// requestedChildren returns child_requested for the sub-agents that a message calls.
func (s *session) requestedChildren(m *event.Message) (children []event.Child) {
	for _, call := range m.ToolCalls() {
		if t, ok := taskOf(call); ok && s.children[t.id] == nil && !containsChild(children, t.id) {
			children = append(children, event.Child{
				State: event.ChildRequested, ChildID: t.id, CallID: t.id, Agent: t.agent, Mode: event.ChildFresh, Task: t.title,
			})
			if a, ok := s.early[t.id]; ok {
				children = append(children, s.answeredChild(&child{}, &a)...)
			}
		}
	}
	return children
}

func containsChild(children []event.Child, id string) bool {
	for i := range children {
		if children[i].ChildID == id {
			return true
		}
	}
	return false
}

// outcome is the toolUseResult of a sub-agent.
type outcome struct {
	AgentID text `json:"agentId"`
	Status  text `json:"status"`
	IsAsync flag `json:"isAsync"`
}

// answeredChildren returns child events for the sub-agents whose results a message has.
func (s *session) answeredChildren(f *facts, m *event.Message) (children []event.Child) {
	for _, a := range answersOf(f, m) {
		if !containsChild(children, a.call) {
			children = append(children, s.answeredChild(s.children[a.call], &a)...)
		}
	}
	return children
}

// answer is the result of a call that may have started a sub-agent. It shares no memory
// with the record.
type answer struct {
	call    string
	session string // of the sub-agent; empty if unknown
	runs    bool   // the sub-agent goes on in the background
	end     event.Child
}

// answersOf returns the results of a message.
func answersOf(f *facts, m *event.Message) (all []answer) {
	results := m.ToolResults()
	var o outcome
	if len(results) == 1 && f.ToolUseResult.Kind() == '{' && json.Unmarshal(f.ToolUseResult, &o) != nil {
		o = outcome{}
	}
	for i := range results {
		a := answer{call: results[i].CallID, runs: bool(o.IsAsync) || o.Status == "async_launched"}
		if o.AgentID != "" {
			a.session = f.SessionID + ".agent-" + string(o.AgentID)
		}
		a.end = childEnd(&results[i], string(o.Status), f.ToolUseResult)
		all = append(all, a)
	}
	return all
}

// answeredChild returns the child events of a result; c is nil for a call that starts no
// sub-agent.
func (s *session) answeredChild(c *child, a *answer) (children []event.Child) {
	if c == nil || c.ended {
		return nil
	}
	session := c.session
	if a.session != "" && session == "" {
		session = a.session
		children = append(children, event.Child{State: event.ChildStarted, ChildID: a.call, ChildSessionID: session, CallID: a.call})
	}
	if a.runs {
		return children
	}
	end := a.end
	end.ChildSessionID = session
	return append(children, end)
}

// childEnd returns the end of a sub-agent, from the result of its call.
func childEnd(r *event.Part, status string, structured jsontext.Value) event.Child {
	c := event.Child{State: event.ChildCompleted, ChildID: r.CallID, CallID: r.CallID, Status: status}
	if !r.IsError {
		return c
	}
	c.State = event.ChildFailed
	c.Error = opening{text: event.Message{Parts: r.Content}.Text()}.title()
	if reason, _ := rawjson.Text(structured); reason == "User rejected tool use" {
		c.State, c.Reason, c.Error = event.ChildCanceled, c.Error, ""
	}
	return c
}

// childOfRecord returns the child event of a progress record, or of a record that says that
// a background sub-agent has ended. m is nil if the record is not a message.
func (s *session) childOfRecord(f *facts, m *event.Message) []event.Child {
	if f.Type == "progress" && s.children[f.ParentToolUseID] != nil {
		return s.childOfProgress(f)
	}
	if len(s.tasks) == 0 {
		return nil
	}
	if note := strings.TrimSpace(f.prompt()); strings.HasPrefix(note, "<task-notification>") {
		return s.endedChild(note, f.SessionID+".agent-"+elementText(note, "task-id"))
	}
	if m == nil {
		return nil
	}
	for _, result := range m.ToolResults() {
		note := strings.TrimSpace(event.Message{Parts: result.Content}.Text())
		if strings.HasPrefix(note, "<retrieval_status>") && elementText(note, "status") != "running" {
			return s.endedChild(note, f.SessionID+".agent-"+elementText(note, "task_id"))
		}
	}
	return nil
}

// childOfProgress returns child_started, if the record names the sub-agent's session for
// the first time.
func (s *session) childOfProgress(f *facts) []event.Child {
	id := f.ParentToolUseID
	progress, ok := f.progress()
	if !ok || s.children[id].session != "" {
		return nil
	}
	session := f.SessionID + ".agent-" + string(progress.AgentID)
	return []event.Child{{State: event.ChildStarted, ChildID: id, ChildSessionID: session, CallID: id}}
}

// endedChild returns the end of the sub-agent of a session.
func (s *session) endedChild(note, session string) []event.Child {
	for _, t := range s.tasks {
		c := s.children[t.id]
		if c == nil || c.session != session || c.ended {
			continue
		}
		end := event.Child{State: event.ChildCompleted, ChildID: t.id, ChildSessionID: session, CallID: t.id, Status: elementText(note, "status")}
		switch end.Status {
		case "failed":
			end.State, end.Error = event.ChildFailed, elementText(note, "summary")
		case "killed", "stopped":
			end.State, end.Reason = event.ChildCanceled, elementText(note, "summary")
		}
		return []event.Child{end}
	}
	return nil
}

// elementText is the text of the first element with the tag.
func elementText(s, tag string) string {
	_, rest, _ := strings.Cut(s, "<"+tag+">")
	inner, _, ok := strings.Cut(rest, "</"+tag+">")
	if !ok {
		return ""
	}
	return strings.TrimSpace(inner)
}

// addChildStart adds child_started to the calling session when the first line of the
// sub-agent arrives, if the file has both sessions.
func (im *importer) addChildStart(s *session, rec *records.Record, f *facts, call string) error {
	parent := im.sessions[f.SessionID]
	if parent == nil || !parent.seen || parent.children[call] == nil || parent.children[call].session != "" {
		return nil
	}
	c := event.Child{State: event.ChildStarted, ChildID: call, ChildSessionID: s.ID, CallID: call}
	e, err := rec.Event(childPart, c)
	if err != nil {
		return rec.Located(err)
	}
	parent.tree.extend(parent.Add(childKey(&c), im.at, e))
	parent.indexChild(&c)
	return nil
}
