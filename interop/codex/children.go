package codex

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
)

const (
	// spawnTool is the tool that starts a sub-agent.
	spawnTool = "spawn_agent"
	// notificationTag begins a note that a sub-agent has ended.
	notificationTag = "<subagent_notification>"
)

// child is the state of a sub-agent in the calling session.
type child struct {
	session string // empty while unknown
	seq     int64  // first event about the sub-agent
	ended   bool
}

// indexChild indexes a child event.
func (s *session) indexChild(c *event.Child, seq int64) {
	known := s.children[c.ChildID]
	if known == nil {
		known = &child{seq: seq}
		s.children[c.ChildID] = known
	}
	known.session = cmp.Or(c.ChildSessionID, known.session)
	if path := extraText(c.Extra, "agent_path"); path != "" {
		s.tasks[c.ChildID] = taskName(path)
	}
	switch c.State {
	case event.ChildCompleted, event.ChildFailed, event.ChildCanceled:
		known.ended = true
	}
}

// childEvents returns the child events that a record adds after its own event.
func (s *session) childEvents(l *line, p event.Payload) (children []event.Child) {
	if m, ok := p.(event.Message); ok {
		for i := range m.Parts {
			children = append(children, s.childrenOfPart(&m.Parts[i])...)
		}
		if m.Role == event.User {
			children = append(children, s.childOfNotification(m.Text())...)
			children = append(children, s.childOfAnswer(&m)...)
		}
		return children
	}
	switch {
	case l.isEvent("collab_waiting_end"):
		return s.childEnds(l.members.Peek("statuses"))
	case l.isEvent("collab_close_end"):
		return s.childEnd(l.text("receiver_thread_id"), l.members.Peek("status"), true)
	}
	return nil
}

// childrenOfPart returns the child events of a call or a result.
func (s *session) childrenOfPart(p *event.Part) []event.Child {
	switch {
	case p.Type == event.ToolCallPart && p.Name == spawnTool && s.children[p.CallID] == nil:
		return []event.Child{spawnRequest(p)}
	case p.Type == event.ToolResultPart && p.Name == spawnTool:
		return s.spawnResult(p)
	case p.Type == event.ToolResultPart && strings.HasPrefix(p.Name, "wait"):
		return s.childEnds(member(jsontext.Value(resultText(p)), "status"))
	}
	return nil
}

// childOfNotification returns the end of a sub-agent, from a note in the user's name.
func (s *session) childOfNotification(text string) []event.Child {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), notificationTag)
	if !ok {
		return nil
	}
	note := jsontext.Value(strings.TrimSuffix(strings.TrimSpace(inner), "</subagent_notification>"))
	session, _ := rawjson.Text(member(note, "agent_id"))
	if session == "" {
		session, _ = rawjson.Text(member(note, "agent_path"))
	}
	return s.childEnd(session, member(note, "status"), false)
}

// finalAnswer begins the last message of a sub-agent to the agent that started it.
const finalAnswer = "Message Type: FINAL_ANSWER"

// childOfAnswer returns the end of the sub-agent that sends its final answer.
func (s *session) childOfAnswer(m *event.Message) []event.Child {
	if !isFromAgent(m) || !strings.HasPrefix(strings.TrimSpace(m.Text()), finalAnswer) {
		return nil
	}
	author := taskName(extraText(m.Extra, "author"))
	for _, id := range slices.Sorted(maps.Keys(s.children)) {
		c := s.children[id]
		if c.ended || author == "" || s.tasks[id] != author {
			continue
		}
		end := event.Child{State: event.ChildCompleted, ChildID: id, ChildSessionID: c.session, Status: "completed"}
		if _, called := s.calls[id]; called {
			end.CallID = id
		}
		return []event.Child{end}
	}
	return nil
}

// taskName is the last name in the path of an agent.
func taskName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// indexTask notes the name of the sub-agent that a call starts, from the call or its
// result.
func (s *session) indexTask(p *event.Part) {
	v := p.Arguments
	if p.Type == event.ToolResultPart {
		v = jsontext.Value(resultText(p))
	}
	if name, _ := rawjson.Text(member(v, "task_name")); p.Name == spawnTool && name != "" {
		s.tasks[p.CallID] = taskName(name)
	}
}

// spawnRequest returns child_requested for a call of spawn_agent.
func spawnRequest(p *event.Part) event.Child {
	var a struct {
		Agent   string `json:"agent_type"`
		Message string `json:"message"`
		Fork    bool   `json:"fork_context"`
	}
	_ = json.Unmarshal(p.Arguments, &a) // malformed arguments count as empty
	c := event.Child{
		State: event.ChildRequested, ChildID: p.CallID, CallID: p.CallID, Agent: a.Agent, Mode: event.ChildFresh,
		Task: titles.Of(a.Message),
	}
	if a.Fork {
		c.Mode = event.ChildFork
	}
	return c
}

// spawnResult returns child_started or child_failed, from the result of spawn_agent.
func (s *session) spawnResult(p *event.Part) []event.Child {
	c := s.children[p.CallID]
	if c == nil || c.ended || c.session != "" {
		return nil
	}
	text := resultText(p)
	if id, _ := rawjson.Text(member(jsontext.Value(text), "agent_id")); id != "" {
		return []event.Child{{State: event.ChildStarted, ChildID: p.CallID, ChildSessionID: id, CallID: p.CallID}}
	}
	if p.Interrupted || isRefusal(text) {
		return []event.Child{{State: event.ChildFailed, ChildID: p.CallID, CallID: p.CallID, Error: titles.Of(text)}}
	}
	return nil
}

// isRefusal reports whether the result of spawn_agent is an error. In the file of a fork
// the copied result tells the sub-agent its role.
func isRefusal(text string) bool {
	return text != "" && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "You are the newly spawned agent")
}

// resultText is the text of a tool result.
func resultText(p *event.Part) string {
	return strings.TrimSpace(event.Message{Parts: p.Content}.Text())
}

// spawnEvent converts a record that reports the start of a sub-agent.
func (s *session) spawnEvent(l *line) event.Payload {
	id, session := l.text("call_id"), l.text("new_thread_id")
	if l.isEvent("sub_agent_activity") {
		id, session = cmp.Or(l.text("event_id"), l.text("agent_thread_id")), l.text("agent_thread_id")
		if l.text("kind") != "started" {
			return nil
		}
	}
	known := s.children[id]
	if id == "" || known != nil && (known.session != "" || known.ended) {
		return nil
	}
	c := event.Child{
		State: event.ChildStarted, ChildID: id, ChildSessionID: session, Agent: l.text("new_agent_nickname"),
		Status: l.text("status"), Extra: l.payloadExtra(),
	}
	if _, called := s.calls[id]; called {
		c.CallID = id
	}
	if session == "" {
		c.State, c.Error = event.ChildFailed, cmp.Or(c.Status, "not started")
	}
	return c
}

// childEnds returns the ends of sub-agents from an object of statuses by session id.
func (s *session) childEnds(v jsontext.Value) (children []event.Child) {
	if v.Kind() != '{' {
		return nil
	}
	members, err := rawjson.Members(v)
	if err != nil {
		return nil
	}
	for _, m := range members {
		children = append(children, s.childEnd(m.Name, m.Value, false)...)
	}
	return children
}

// childEnd returns the end of a sub-agent, from its status. A closed sub-agent has ended
// with any status.
func (s *session) childEnd(session string, status jsontext.Value, closed bool) []event.Child {
	call, ok := s.openChild(session)
	if !ok {
		return nil
	}
	c := event.Child{State: event.ChildCanceled, ChildID: call, ChildSessionID: session}
	if _, called := s.calls[call]; called {
		c.CallID = call
	}
	c.Status, _ = rawjson.Text(status)
	failure, failed := rawjson.Text(member(status, "errored"))
	switch {
	case member(status, "completed") != nil:
		c.State, c.Status = event.ChildCompleted, "completed"
	case failed:
		c.State, c.Status, c.Error = event.ChildFailed, "errored", titles.Of(failure)
	case !closed && c.Status != "shutdown" && c.Status != "interrupted":
		return nil
	}
	return []event.Child{c}
}

// openChild returns the call of a running sub-agent, by the session of the sub-agent.
func (s *session) openChild(session string) (call string, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(s.children)) {
		if c := s.children[id]; c.session == session && session != "" && !c.ended {
			return id, true
		}
	}
	return "", false
}
