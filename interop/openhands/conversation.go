package openhands

import (
	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// isEventObject reports whether a value is an event.
func isEventObject(o *parts.Members) bool {
	return o.Has("id") && o.Has("source") && o.Has("timestamp") &&
		(o.PeekText("kind") != "" || o.PeekText("action") != "" || o.PeekText("observation") != "")
}

// readEvent parses an event on a line or in a file of its own. Its items follow the
// items that the session has.
func (r *reader) readEvent(f *document.File, rec *records.Record) document.Session {
	if r.responses == nil {
		r.responses = map[string]bool{}
	}
	b := builder{model: r.model, usages: r.usages, single: true, responses: r.responses, calls: map[string]call{}}
	b.addEvent(rec)
	for i := range b.items {
		b.items[i].Late = true
		b.items[i].Anywhere = b.items[i].Name == ""
	}
	s := newPiece(f, rec)
	s.Items, s.Totals = b.items, b.stats
	if r.stats != nil { // the state is newer than the event
		s.Totals = r.stats.sum()
	}
	return s
}

// sessionID is the session id of the conversation with that name.
func sessionID(f *document.File, name string) string {
	if len(name) < minUniqueName || event.CheckSessionID(name) != nil {
		return f.Folder(name)
	}
	return name
}

// newPiece returns an empty piece of the session, for one event or the state.
func newPiece(f *document.File, rec *records.Record) document.Session {
	s := document.Session{ID: f.Session(""), Rec: rec, Piece: true, About: event.Session{Agent: "OpenHands"}}
	if name := conversationName(f.Path); name != "" {
		s.ID, s.Own = sessionID(f, name), name
	}
	return s
}

// minUniqueName is the length of a folder name that is unique without digits of the
// path.
const minUniqueName = 12

// readState parses the state of a conversation.
func (r *reader) readState(f *document.File, rec *records.Record, o *parts.Members) document.Session {
	s := newPiece(f, rec)
	var agent struct {
		LLM struct {
			Model string `json:"model"`
		} `json:"llm"`
	}
	if json.Unmarshal(o.Peek("agent"), &agent) == nil {
		r.model = agent.LLM.Model
	}
	if r.stats = statsIn(rec.Value); r.stats != nil {
		r.usages = map[string]event.Usage{}
		for _, m := range r.stats.All {
			m.addTo(r.usages)
		}
		s.Totals = r.stats.sum()
	}
	if workspace, err := parts.Open(o.Peek("workspace")); err == nil {
		s.About.CWD = workspace.PeekText("working_dir")
	}
	return s
}
