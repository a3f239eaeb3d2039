package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/search"
)

// Matched reports a redaction by Match.
type Matched struct {
	Redaction
	// Places are the places with the pattern that Match erased.
	Places []search.Place
	// Left are the places that no redaction erases: headers, members that redaction
	// keeps, and lost events.
	Left []search.Place
	// Files are places in the store's files that still have the bytes of the pattern
	// afterwards: plain, escaped or in base64. A text is looked for as it was given, in
	// lower case and in upper case. Files is empty after a dry run, and for a store
	// without eventlog.ByteFinder.
	Files []eventlog.FilePlace
}

// Match redacts every event in which anything that is stored contains the pattern, as
// search.Stored finds it, with the events that go along as in Redact. It searches the
// named sessions, or all sessions. Several places may be in one event.
//
// Match erases nothing if a session cannot be read: repair or remove it, or name the
// other sessions.
func Match(ctx context.Context, log *eventlog.Log, p search.Pattern, sessions []string, opts ...RedactOptions) (Matched, error) {
	if err := engine.Of(log).Ready(ctx); err != nil {
		return Matched{}, err
	}
	r, err := newRedaction(log, opts)
	if err != nil {
		return Matched{}, fmt.Errorf("redact by a pattern: %w", err)
	}
	var m Matched
	r.plan.exact = true
	m.Redaction, err = r.locked(ctx, func(ctx context.Context) error {
		found, err := m.find(ctx, log, p, sessions)
		if err != nil {
			return err
		}
		for _, session := range slices.Sorted(maps.Keys(found)) {
			if err := r.plan.ask(ctx, session, found[session]); err != nil {
				return fmt.Errorf("redact in session %q: %w", session, err)
			}
		}
		if err := r.run(ctx); err != nil || r.opts.DryRun {
			return err
		}
		return m.findBytes(ctx, log, &p)
	})
	return m, err
}

// findBytes looks for the pattern in the store's files.
func (m *Matched) findBytes(ctx context.Context, log *eventlog.Log, p *search.Pattern) error {
	finder, ok := eventlog.As[eventlog.ByteFinder](log.Store())
	var needles [][]byte
	for _, text := range p.Texts() {
		for _, cased := range []string{text, strings.ToLower(text), strings.ToUpper(text)} {
			needles = append(needles, search.Forms(cased)...)
		}
	}
	for _, place := range append(slices.Clone(m.Places), m.Left...) {
		for _, text := range place.Matches {
			needles = append(needles, search.Forms(text)...)
		}
	}
	slices.SortFunc(needles, bytes.Compare)
	needles = slices.CompactFunc(needles, bytes.Equal)
	if !ok || len(needles) == 0 {
		return nil
	}
	for place, err := range finder.FindBytes(ctx, needles) {
		if err != nil {
			return err
		}
		m.Files = append(m.Files, place)
	}
	return nil
}

// find returns the seqs of the events to redact, by session.
func (m *Matched) find(ctx context.Context, log *eventlog.Log, p search.Pattern, sessions []string) (map[string][]int64, error) {
	found := map[string][]int64{}
	var unread error
	for place, err := range search.Stored(ctx, log, p, sessions...) {
		switch {
		case err != nil && (place.Session == "" || ctx.Err() != nil):
			return nil, err
		case err != nil:
			unread = errors.Join(unread, err)
		case place.Kept || !place.Type.Erasable():
			m.Left = append(m.Left, place)
		default:
			m.Places = append(m.Places, place)
			found[place.Session] = append(found[place.Session], place.Seq)
		}
	}
	return found, unread
}
