package main

import (
	"context"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
)

// searchStored lists every stored place of the text.
func (a *app) searchStored(ctx context.Context, log *eventlog.Log, s searchOptions) error {
	pattern, err := search.Literal(s.text)
	if err != nil {
		return usagef("%v", err)
	}
	if s.session != "" {
		if s.session, err = resolve(ctx, log, s.session); err != nil {
			return err
		}
	} else {
		a.progress.ReadsAll()
	}
	p := a.printer()
	var failed []error
	shown := 0
	for place, err := range search.Stored(ctx, log, pattern, s.sessions()...) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if !s.wants(place.Type) {
			continue
		}
		if shown++; s.limit > 0 && shown > s.limit {
			p.Printf("there are more: --limit 0 prints all\n")
			break
		}
		if err := a.printPlace(p, place); err != nil {
			failed = append(failed, err)
			break
		}
	}
	if err := errors.Join(append(failed, p.Flush())...); err != nil {
		return err
	}
	if shown == 0 {
		return &foundNothingError{text: s.text, types: s.types, phrase: true}
	}
	return nil
}

func (a *app) printPlace(p *printer, place search.Place) error {
	if a.json {
		return p.Value(placeRows([]search.Place{place})[0])
	}
	p.Printf("%s\n", placeText(place))
	return nil
}

// sessions are the named session, or none for all sessions.
func (s *searchOptions) sessions() []string {
	if s.session == "" {
		return nil
	}
	return []string{s.session}
}

// wants reports whether --type allows the type.
func (s *searchOptions) wants(t event.Type) bool {
	for _, wanted := range s.types {
		if event.Type(wanted).Name() == t.Name() {
			return true
		}
	}
	return len(s.types) == 0
}
