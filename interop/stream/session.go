package stream

import (
	"cmp"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// builder turns lines into sessions.
type builder struct {
	sessions map[string]*session // by id
	order    []*session
	thread   string // the session of lines without an id; empty before the first one
}

// session is a session of the stream.
type session struct {
	document.Session
	reader parts.Reader
	// responses are the ids of answers so far. calls is the number of calls of Codex.
	responses map[string]bool
	calls     int
	totals    document.Totals
}

var errNoSession = errors.New("the line comes before the start of a session")

// session is the session with an id, which may be new.
func (b *builder) session(id string, rec *records.Record) *session {
	s := b.sessions[id]
	if s == nil {
		s = &session{responses: map[string]bool{}, reader: parts.Reader{Names: map[string]string{}}}
		s.ID, s.Own, s.Rec = id, id, rec
		b.sessions[id] = s
		b.order = append(b.order, s)
	}
	return s
}

// add adds the items of a line to its session.
func (b *builder) add(rec *records.Record) {
	o, err := parts.Open(rec.Value)
	kind := o.PeekText("type")
	id := cmp.Or(o.PeekText("session_id"), b.thread)
	switch {
	case err != nil:
	case kind == "thread.started":
		b.thread = o.PeekText("thread_id")
		s := b.session(b.thread, rec)
		s.About.Agent = "codex"
		s.raw(rec, kind)
	case id == "":
		b.order = append(b.order, &session{Session: document.Session{Rec: rec, Rejected: errNoSession}})
	case o.Has("session_id"):
		b.addClaude(id, rec, &o, kind)
	default:
		b.session(id, rec).addCodex(rec, &o, kind)
	}
}

func (s *session) raw(rec *records.Record, kind string) {
	s.Items = append(s.Items, document.Raw(*rec, cmp.Or(kind, "line")))
}

// message adds the message of a line; part numbers the messages of the line.
func (s *session) message(rec *records.Record, m event.Message, part int, partial bool) {
	s.Items = append(s.Items, document.Item{Rec: *rec, Part: part, Partial: partial, Payload: m, Kind: "message"})
}
