package openhands

import (
	"cmp"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// reader reads the values of a file.
type reader struct {
	// model, stats and usages are of a conversation, from its state: usages are the tokens
	// of responses, by response id. responses are the responses so far.
	model     string
	stats     *stats
	usages    map[string]event.Usage
	responses map[string]bool
}

// read parses an instance of an evaluation, a list of events, an event or a state.
func (r *reader) read(f *document.File, rec *records.Record) ([]document.Session, error) {
	s := document.Session{ID: f.Session(""), Rec: rec, About: event.Session{Agent: "OpenHands"}}
	list := rec.Value
	var instance facts
	if list.Kind() == '{' {
		o, err := parts.Open(rec.Value)
		if err != nil {
			return nil, document.ErrShape
		}
		if isEventObject(&o) {
			return []document.Session{r.readEvent(f, rec)}, nil
		}
		if filepath.Base(f.Path) == stateName && o.Has("agent") {
			return []document.Session{r.readState(f, rec, &o)}, nil
		}
		if list = takeList(&o); list == nil {
			return nil, document.ErrShape
		}
		instance = factsOf(rec.Value)
		if s.Own = instance.Instance; s.Own != "" {
			s.ID = f.Session(s.Own)
		}
		s.About = event.Session{Agent: cmp.Or(instance.Metadata.Agent, "OpenHands"), Title: titles.Of(instance.Task.Statement), Extra: o.Rest()}
	}
	events, err := document.Elements(rec, list)
	if err != nil {
		return nil, err
	}
	b := builder{model: instance.Metadata.Model.Name, usages: instance.usages(), responses: map[string]bool{}, calls: map[string]call{}}
	if err := b.addAll(events); err != nil {
		return nil, err
	}
	s.Items, s.Totals = b.items, instance.spent()
	if s.Totals.Cost == 0 && s.Totals.Usage.IsZero() {
		s.Totals = b.stats
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
