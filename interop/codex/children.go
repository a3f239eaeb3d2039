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
	"github.com/convlog/convlog/interop"
)

const (
	// spawnTool is the tool that starts a sub-agent.
	spawnTool = "spawn_agent"
	// notification begins a note that one has ended.
	notificationTag = "<subagent_notification>"
)

// child is what the session says of a sub-agent.
type child struct {
	session string // empty while it is not known
	seq     int64  // of the first event that tells of it
	ended   bool
}

// told takes in a child_* event.
func (s *session) indexChild(c *event.Child, seq int64) {
	known := s.children[c.ChildID]
	if known == nil {
		known = &child{seq: seq}
		s.children[c.ChildID] = known
	}
	known.session = cmp.Or(c.ChildSessionID, known.session)
	switch c.State {
	case event.ChildStateCompleted, event.ChildStateFailed, event.ChildStateCanceled:
		known.ended = true
	}
}

// tells is what a record says of sub-agents beside its own event.
func (s *session) childEvents(l *line, p event.Payload) (told []event.Child) {
	if m, ok := p.(event.Message); ok {
		for i := range m.Parts {
			told = append(told, s.childrenOfPart(&m.Parts[i])...)
		}
		if m.Role == event.User {
			told = append(told, s.childOfNotification(m.Text())...)
		}
		return told
	}
	switch {
	case l.isEvent("collab_waiting_end"):
		return s.childEnds(l.members.Peek("statuses"))
	case l.isEvent("collab_close_end"):
		return s.closed(l.text("receiver_thread_id"), l.members.Peek("status"))
	}
	return nil
}

// heard is what a call or a result says of sub-agents.
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

// notified is what a note in the user's name says of a sub-agent: that it has
// ended.
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

// requested is a call that starts a sub-agent.
func spawnRequest(p *event.Part) event.Child {
	var a struct {
		Agent   string `json:"agent_type"`
		Message string `json:"message"`
		Fork    bool   `json:"fork_context"`
	}
	_ = json.Unmarshal(p.Arguments, &a) // what is of another shape says nothing
	c := event.Child{
		State: event.ChildStateRequested, ChildID: p.CallID, CallID: p.CallID, Agent: a.Agent, Mode: event.ChildFresh,
		Task: interop.Title(a.Message),
	}
	if a.Fork {
		c.Mode = event.ChildFork
	}
	return c
}

// answered is what the result of such a call says: the sub-agent's session, or
// that there is none.
func (s *session) spawnResult(p *event.Part) []event.Child {
	c := s.children[p.CallID]
	if c == nil || c.ended || c.session != "" {
		return nil
	}
	text := resultText(p)
	if id, _ := rawjson.Text(member(jsontext.Value(text), "agent_id")); id != "" {
		return []event.Child{{State: event.ChildStateStarted, ChildID: p.CallID, ChildSessionID: id, CallID: p.CallID}}
	}
	if strings.HasPrefix(text, "collab spawn failed") || p.Interrupted {
		return []event.Child{{State: event.ChildStateFailed, ChildID: p.CallID, CallID: p.CallID, Error: interop.Title(text)}}
	}
	return nil
}

// said is the text of a result.
func resultText(p *event.Part) string {
	return strings.TrimSpace(event.Message{Parts: p.Content}.Text())
}

// spawned is what becomes of a record that a sub-agent has started, or has not.
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
		State: event.ChildStateStarted, ChildID: id, ChildSessionID: session, Agent: l.text("new_agent_nickname"),
		Status: l.text("status"), Extra: l.payloadExtra(),
	}
	if _, called := s.calls[id]; called {
		c.CallID = id
	}
	if session == "" {
		c.State, c.Error = event.ChildStateFailed, cmp.Or(c.Status, "not started")
	}
	return c
}

// statuses are the ends of sub-agents among their statuses, by their sessions.
func (s *session) childEnds(v jsontext.Value) (told []event.Child) {
	if v.Kind() != '{' {
		return nil
	}
	members, err := rawjson.Members(v)
	if err != nil {
		return nil
	}
	for _, m := range members {
		told = append(told, s.childEnd(m.Name, m.Value, false)...)
	}
	return told
}

// closed is the end of a sub-agent that is done with.
func (s *session) closed(session string, status jsontext.Value) []event.Child {
	return s.childEnd(session, status, true)
}

// ended says how a sub-agent ended, by its status; it has anyhow if closed.
func (s *session) childEnd(session string, status jsontext.Value, closed bool) []event.Child {
	call, ok := s.openChild(session)
	if !ok {
		return nil
	}
	c := event.Child{State: event.ChildStateCanceled, ChildID: call, ChildSessionID: session}
	if _, called := s.calls[call]; called {
		c.CallID = call
	}
	c.Status, _ = rawjson.Text(status)
	failure, failed := rawjson.Text(member(status, "errored"))
	switch {
	case member(status, "completed") != nil:
		c.State, c.Status = event.ChildStateCompleted, "completed"
	case failed:
		c.State, c.Status, c.Error = event.ChildStateFailed, "errored", interop.Title(failure)
	case !closed && c.Status != "shutdown" && c.Status != "interrupted":
		return nil
	}
	return []event.Child{c}
}

// childOf is the call of a sub-agent that is under way, by its session.
func (s *session) openChild(session string) (call string, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(s.children)) {
		if c := s.children[id]; c.session == session && session != "" && !c.ended {
			return id, true
		}
	}
	return "", false
}
