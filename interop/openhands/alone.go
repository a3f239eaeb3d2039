package openhands

import (
	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// isOne reports whether a value is an event.
func isOne(o *parts.Members) bool {
	return o.Has("id") && o.Has("source") && o.Has("timestamp") &&
		(o.PeekText("kind") != "" || o.PeekText("action") != "" || o.PeekText("observation") != "")
}

// alone reads an event that stands alone, in a file or on a line of one: it comes
// behind those that the session has.
func (r *reader) alone(f *document.File, rec *interop.Record) document.Session {
	t := teller{model: r.model, alone: true, answered: map[string]bool{}, calls: map[string]call{}}
	t.event(rec)
	for i := range t.items {
		t.items[i].Late = true
		if t.items[i].Name == "" {
			t.items[i].Name = "value " + string(rec.Digest)
		}
	}
	s := piece(f, rec)
	s.Items, s.Spent = t.items, t.stats
	return s
}

// piece is a piece of the session whose events stand alone.
func piece(f *document.File, rec *interop.Record) document.Session {
	s := document.Session{ID: f.Session(""), Rec: rec, Piece: true, About: event.Session{Agent: "OpenHands"}}
	if name := conversation(f.Path); name != "" {
		s.ID, s.Own = sessionOf(f, name), name
	}
	return s
}

// sessionOf is the id of a conversation's session: the name of its folder, with
// digits of the path if the name is too short to be unique.
func sessionOf(f *document.File, name string) string {
	if len(name) < ownName || event.CheckSessionID(name) != nil {
		return f.Folder(name)
	}
	return name
}

// ownName is how long the name of a conversation must be to be nobody else's.
const ownName = 12

// state reads what stands beside the events of a conversation.
func (r *reader) state(f *document.File, rec *interop.Record, o *parts.Members) document.Session {
	s := piece(f, rec)
	var told struct {
		LLM struct {
			Model string `json:"model"`
		} `json:"llm"`
	}
	if json.Unmarshal(o.Peek("agent"), &told) == nil {
		r.model = told.LLM.Model
	}
	if workspace, err := parts.Open(o.Peek("workspace")); err == nil {
		s.About.CWD = workspace.PeekText("working_dir")
	}
	return s
}
