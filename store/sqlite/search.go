package sqlite

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// Search implements eventlog.Searcher. It reads the events that match in the index and
// all events that are not indexed yet. Without an index, or with a damaged one, it
// reads all events.
//
// The matches of a session come in parts, so that several goroutines can read one
// session. If a session has many, only the newest are in the plan. The other parts query
// the index when their iteration begins, so a caller that stops early does not pay for
// them.
func (s *Store) Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[eventlog.Candidates, error] {
	return func(yield func(eventlog.Candidates, error) bool) {
		p := searchPlan{only: session, to: to}
		p.query, p.indexed = indexQuery(terms)
		err := s.read(ctx, func(c *conn) error { return p.build(ctx, c) })
		if isDamage(err) && p.indexed {
			p.indexed = false
			err = s.read(ctx, func(c *conn) error { return p.build(ctx, c) })
		}
		if err != nil {
			yield(eventlog.Candidates{Session: session}, s.locate(session, "events", 0, err))
			return
		}
		for _, one := range p.inOrder() {
			if !yield(eventlog.Candidates{Session: one.Session, Events: s.newest(ctx, one, to)}, nil) {
				return
			}
			for part := range p.parts(one) {
				if !yield(eventlog.Candidates{Session: one.Session, Events: s.older(ctx, part)}, nil) {
					return
				}
			}
		}
	}
}

// newest yields the events of one session that are not indexed, and then the planned
// matches, newest first.
func (s *Store) newest(ctx context.Context, one *sessionPlan, to int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if one.scanFrom > 0 && (to == 0 || one.scanFrom <= to) {
			for e, err := range s.Read(ctx, one.Session, eventlog.Span{From: one.scanFrom, To: to, Backward: true}) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
		f := finder{store: s, one: one, seqs: one.seqs[:min(firstHits, len(one.seqs))], rows: pages.FirstRows}
		if one.lines != nil {
			f.deliver(foundPage{lines: one.lines}, yield)
			return
		}
		f.events(ctx, yield)
	}
}

// older yields the matches of a part, newest first. It reads all events of the part if
// the index has changed so that it may lack some, and all events between the matches if
// most of them match.
func (s *Store) older(ctx context.Context, part searchPart) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		seqs, changed := part.seqs, false
		if seqs == nil {
			err := s.read(ctx, func(c *conn) (err error) {
				seqs, changed, err = part.matches(ctx, c)
				return err
			})
			if changed = changed || isDamage(err); err != nil && !changed {
				yield(event.Event{}, err)
				return
			}
		}
		span := eventlog.Span{From: part.from, To: part.to, Backward: true}
		if !changed {
			if len(seqs) == 0 {
				return
			}
			span.From, span.To = seqs[len(seqs)-1], seqs[0]
		}
		if changed || span.To-span.From < 2*int64(len(seqs)) {
			s.readPages(ctx, part.one.Session, span, pages.MaxRows, yield)
			return
		}
		f := finder{store: s, one: part.one, seqs: seqs, rows: 4 * pages.FirstRows}
		f.events(ctx, yield)
	}
}
