package cline

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// reader reads the history of a task.
type reader struct{ facts facts }

// read parses the history of a task, or the document of a session.
func (r *reader) read(f *document.File, rec *records.Record) ([]document.Session, error) {
	s := document.Session{Rec: rec}
	s.ID, s.FallbackID = sessionIDs(f)
	list := rec.Value
	if list.Kind() == '{' {
		o, err := parts.Open(rec.Value)
		if err != nil || !o.Has("messages") {
			return nil, document.ErrShape
		}
		list = o.Take("messages")
		s.Own = o.PeekText("sessionId")
		s.ID, s.FallbackID = documentIDs(f, s.Own)
		o.Take("updated_at")
		s.Version = string(o.Peek("version"))
		s.About.Extra = o.Rest()
	} else if folder := taskOf(f.Path); folder != "" {
		s.Own = folder
	}
	messages, err := document.Elements(rec, list)
	if err != nil {
		return nil, err
	}
	b := builder{facts: &r.facts, reader: &parts.Reader{Names: map[string]string{}}, hidden: map[string][]int{}}
	for i := range messages {
		b.leaveOut(rec, i)
		b.index, b.starts = i, append(b.starts, len(b.items))
		if err := b.add(&messages[i]); err != nil {
			return nil, err
		}
	}
	b.leaveOut(rec, len(messages))
	s.Items = b.items
	r.describe(&s, &b)
	return []document.Session{s}, nil
}

// describe sets what the session is about.
func (r *reader) describe(s *document.Session, b *builder) {
	s.About.Agent = "Cline"
	if r.facts.isRoo || b.isRoo {
		s.About.Agent = "Roo Code"
	}
	s.About.Title = titles.Of(cmp.Or(r.facts.title, b.title))
	s.About.CWD = cmp.Or(r.facts.folder, b.folder)
	s.About.Parent.SessionID = r.facts.parent
	if r.facts.environments != nil {
		s.About.Extra = rawjson.NonEmpty([]rawjson.Member{{Name: "environment_history", Value: r.facts.environments}})
	}
	s.Totals = document.Totals{Usage: r.facts.total.tokens, Cost: r.facts.total.cost, Model: b.lastModel}
}

// builder turns messages into items.
type builder struct {
	facts  *facts
	reader *parts.Reader
	items  []document.Item
	index  int // of the message in the history
	// starts are the indexes of the first items of the messages. hidden are the indexes of
	// the messages that a truncation hides, by its id.
	starts []int
	hidden map[string][]int
	calls  int // calls in texts so far
	open   []openCall
	cost   event.Cost // of the newest answer
	// model is the model in the newest description of the environment. title and folder
	// are of the first task and description.
	model, lastModel, title, folder string
	isRoo                           bool
}

// add adds the items of a message.
func (b *builder) add(rec *records.Record) error {
	o, err := parts.Open(rec.Value)
	if err != nil {
		b.items = append(b.items, document.Raw(*rec, "message"))
		return nil
	}
	role := event.Role(o.PeekText("role"))
	content := o.Peek("content")
	blocks, err := blocksOf(content)
	if err != nil || role != event.User && role != event.Assistant {
		b.items = append(b.items, document.Raw(*rec, "message"))
		return nil
	}
	o.Take("role")
	o.Take("content")
	if id := o.PeekText("condenseId"); id != "" && o.Peek("isSummary").Kind() == 't' {
		return b.addSummary(rec, id, blocks)
	}
	if id := o.PeekText("truncationId"); id != "" && o.Peek("isTruncationMarker").Kind() == 't' {
		return b.addMarker(rec, &o, id, blocks)
	}
	if id := o.PeekText("truncationParent"); id != "" {
		b.hidden[id] = append(b.hidden[id], b.index)
	}
	if role == event.User {
		return b.addUser(rec, &o, blocks)
	}
	m, err := b.answer(&o, content, blocks)
	if err != nil {
		return err
	}
	m.Extra = o.Rest()
	b.lastModel = m.Model
	it := document.Item{Rec: *rec, Payload: m, Kind: "message", Cost: b.cost}
	it.At = milli(cmp.Or(timeOf(&o), b.facts.answered(b.index)))
	b.items = append(b.items, it)
	return nil
}

// addUser adds the pieces of a message of the user.
func (b *builder) addUser(rec *records.Record, o *parts.Members, blocks []jsontext.Value) error {
	s := said{reader: b.reader, open: &b.open}
	all, err := s.payloads(blocks)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		all = []event.Payload{event.Message{Role: event.User}}
	}
	at := milli(cmp.Or(timeOf(o), b.facts.asked(b.index)))
	for i, p := range all {
		b.note(p)
		if i == 0 {
			p = withExtra(p, o.Rest())
		}
		b.items = append(b.items, document.Item{Rec: *rec, Part: i, Partial: len(all) > 1, At: at, Payload: p, Kind: "message"})
	}
	return nil
}

func withExtra(p event.Payload, extra jsontext.Value) event.Payload {
	switch p := p.(type) {
	case event.Message:
		p.Extra = extra
		return p
	case event.ContextEntry:
		p.Extra = extra
		return p
	}
	return p
}

// note takes facts about the session from a piece of a message of the user.
func (b *builder) note(p event.Payload) {
	switch p := p.(type) {
	case event.Message:
		if p.Role == event.User && b.title == "" {
			b.title = taskText(p.Text())
		}
	case event.ContextEntry:
		text := p.Parts[0].Text
		b.folder = cmp.Or(b.folder, firstGroup(workingFolder, text))
		b.model = cmp.Or(firstGroup(currentModel, text), b.model)
		b.isRoo = b.isRoo || rooMode.MatchString(text)
	}
}

// addSummary adds a summary of Roo Code: the model sees it in place of all messages
// before it.
func (b *builder) addSummary(rec *records.Record, id string, blocks []jsontext.Value) error {
	m := event.Message{Role: event.User}
	for _, v := range blocks {
		p, err := b.reader.Block(v)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, p)
	}
	o, err := parts.Open(rec.Value)
	if err != nil {
		return err
	}
	b.open = nil
	b.items = append(b.items, document.Item{
		Rec: *rec, At: milli(timeOf(&o)), Kind: "summary", Key: event.DigestOf([]byte("summary\n" + id)),
		Payload: event.Compaction{
			Strategy: "summary", Trigger: "auto", Replace: true, Summary: m.Text(), Entries: []event.CompactionEntry{{Message: &m}},
		},
	})
	return nil
}
