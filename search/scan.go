package search

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
)

// all are all events of one session up to a seq, or of all sessions.
func (s *search) all(ctx context.Context, session string, to int64) iter.Seq2[eventlog.Candidates, error] {
	return func(yield func(eventlog.Candidates, error) bool) {
		sessions, err := s.scanned(ctx, session, to)
		if err != nil {
			yield(eventlog.Candidates{Session: session}, err)
			return
		}
		for i := range sessions {
			for span := range sessions[i].parts {
				if !yield(eventlog.Candidates{Session: sessions[i].Session, Events: s.read(ctx, sessions[i].Session, span)}, nil) {
					return
				}
			}
		}
	}
}

// read reads the events whose lines may have the terms, or all events.
func (s *search) read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	if s.lines == nil {
		return s.log.Store().Read(ctx, session, span)
	}
	return s.lines.ReadLines(ctx, session, span, s.matcher.mayLine)
}

// scanned lists the sessions to read: one session up to a seq, or all sessions by their
// last activity.
func (s *search) scanned(ctx context.Context, session string, to int64) ([]scan, error) {
	if session == "" {
		return s.sessions(ctx)
	}
	one := scan{Activity: searchtext.Activity{Session: session}, to: to, last: to}
	for first, err := range s.log.Store().Read(ctx, session, eventlog.Span{Limit: 1}) {
		if err == nil { // else the search itself reports the error
			one.first = first.Seq
		}
	}
	if to == 0 {
		for last, err := range s.log.Store().Read(ctx, session, eventlog.Span{Backward: true, Limit: 1}) {
			if err == nil {
				one.last = last.Seq
			}
		}
	}
	return []scan{one}, nil
}

// scan is a session whose events are all read.
type scan struct {
	searchtext.Activity
	to          int64 // 0 reads all events
	first, last int64 // the events that were stored at the start of the search
}

// partLen is how many events one goroutine reads at a time.
const partLen = 8192

// parts yields spans that are read separately, the newest first. Together they have all
// events of the session, also events that were appended since the start of the search.
func (c *scan) parts(yield func(eventlog.Span) bool) {
	span := eventlog.Span{To: c.to, Backward: true, Transient: true}
	for end := c.last; end-partLen >= max(c.first, 1); end -= partLen {
		span.From = end - partLen + 1
		if !yield(span) {
			return
		}
		span.To = end - partLen
	}
	span.From = 0
	yield(span)
}

// sessions lists all sessions by their last activity.
func (s *search) sessions(ctx context.Context) (sessions []scan, err error) {
	for info, err := range s.log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		activity := searchtext.Activity{Session: info.ID, Last: info.Last.Timestamp.Truncate(time.Microsecond)}
		sessions = append(sessions, scan{Activity: activity, first: info.First.Seq, last: info.Last.Seq})
	}
	slices.SortFunc(sessions, func(a, b scan) int { return searchtext.ByActivity(a.Activity, b.Activity) })
	return sessions, nil
}
