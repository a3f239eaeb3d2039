package document

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// about starts the session, or adds a session_updated with a new title or new
// settings.
func (a *adding) about() error {
	about := a.doc.About
	if about.Title == "" && len(a.s.titles) == 0 {
		about.Title = a.firstWords()
	}
	known, err := a.s.knows(about.Extra)
	if err != nil {
		return err
	}
	if a.s.New() {
		about.Source = a.source()
		return a.addAbout(&Item{At: a.startTime()}, about)
	}
	if a.s.Erased || known && (about.Title == "" || a.s.hadTitle(about.Title)) {
		return nil
	}
	about.Updated, about.Source, about.Parent = true, event.SessionSource{}, event.SessionParent{}
	if known {
		about.Extra = nil
	}
	return a.addAbout(&Item{At: a.newestTime()}, about)
}

// source is the source of a new session.
func (a *adding) source() event.SessionSource {
	source := a.doc.About.Source
	if source.Format == "" {
		source = event.SessionSource{Format: a.format, Version: a.doc.Version, SessionID: a.doc.Own}
		if source.SessionID == "" {
			source.SessionID = a.doc.ID
		}
	}
	source.Path = a.doc.Rec.Origin(0).Source
	return source
}

// addAbout adds an event about the session.
func (a *adding) addAbout(it *Item, about event.Session) error {
	e, err := a.doc.Rec.Event(0, about)
	if err == nil && a.s.New() {
		err = a.s.MarkStart(&e)
	}
	if err != nil {
		return err
	}
	a.s.add(sessions.Key{Part: aboutPart}, it, e, about)
	return nil
}

// firstWords is the start of the first text that a person wrote.
func (a *adding) firstWords() string {
	if a.doc.facts != nil {
		return a.doc.facts.words
	}
	for i := range a.doc.Items {
		if words := wordsOf(&a.doc.Items[i]); words != "" {
			return words
		}
	}
	return ""
}

// wordsOf is the start of the first text of an item that a person wrote; empty for other
// items.
func wordsOf(it *Item) string {
	m, ok := it.Payload.(event.Message)
	if !ok || m.Role != event.User || it.Context {
		return ""
	}
	for _, p := range m.Parts {
		if title := titles.Of(p.Text); p.Type == event.TextPart && title != "" {
			return title
		}
	}
	return ""
}
