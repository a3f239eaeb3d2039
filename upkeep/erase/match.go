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
	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/search"
)

// Match redacts every event in which anything that is stored contains the pattern, as
// search.Stored finds it, with the events that go along as in Redact. It searches the
// named sessions, or all sessions. Several places may be in one event.
//
// Match erases nothing if a session cannot be read: repair or remove it, or name the
// other sessions.
func Match(ctx context.Context, log *eventlog.Log, p search.Pattern, sessions []string, opts ...RedactOptions) (Redaction, error) {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return Redaction{}, err
	}
	r, err := newRedaction(log, opts)
	if err != nil {
		return Redaction{}, fmt.Errorf("redact by a pattern: %w", err)
	}
	m := matching{log: log, pattern: &p, report: &r.plan.report}
	r.plan.exact = true
	return r.locked(ctx, func(ctx context.Context) error {
		found, err := m.find(ctx, sessions)
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
		return m.findBytes(ctx)
	})
}

// matching finds the places of a pattern, for the report of Match.
type matching struct {
	log     *eventlog.Log
	pattern *search.Pattern
	report  *Redaction
}

// findBytes looks for the pattern in the store's files.
func (m *matching) findBytes(ctx context.Context) error {
	finder, ok := eventlog.As[eventlog.ByteFinder](m.log.Store())
	var needles [][]byte
	for _, text := range m.pattern.Texts() {
		for _, cased := range []string{text, strings.ToLower(text), strings.ToUpper(text)} {
			needles = append(needles, searchtext.Forms(cased)...)
		}
	}
	for _, place := range append(slices.Clone(m.report.Places), m.report.Left...) {
		for _, text := range place.Matches {
			needles = append(needles, searchtext.Forms(text)...)
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
		m.report.Files = append(m.report.Files, place)
	}
	return nil
}

// find returns the seqs of the events to redact, by session.
func (m *matching) find(ctx context.Context, sessions []string) (map[string][]int64, error) {
	found := map[string][]int64{}
	var unread error
	for place, err := range search.Stored(ctx, m.log, *m.pattern, sessions...) {
		switch {
		case err != nil && (place.Session == "" || ctx.Err() != nil):
			return nil, err
		case err != nil:
			unread = errors.Join(unread, err)
		case place.Kept || !place.Type.Erasable():
			m.report.Left = append(m.report.Left, place)
		default:
			m.report.Places = append(m.report.Places, place)
			found[place.Session] = append(found[place.Session], place.Seq)
		}
	}
	return found, unread
}
