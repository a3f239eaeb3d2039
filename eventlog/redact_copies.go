package eventlog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"
)

// copies notes the events that are copies of those that go, or copies of those:
// those that say so, and those of the same id, which a repair left.
func (p *redactionPlan) copies(ctx context.Context) error {
	sessions, err := p.copiers(ctx)
	if err != nil {
		return err
	}
	if err := p.unread(ctx); err != nil {
		return err
	}
	known := maps.Clone(p.picked)
	for more := len(sessions) > 0; more; {
		more = false
		for _, session := range sessions {
			found, err := p.copiesIn(ctx, session, known)
			if err != nil {
				return err
			}
			more = more || found
		}
	}
	return nil
}

// copiers lists the sessions that may hold copies: those that begin with one,
// or as one of the sessions to rewrite does.
func (p *redactionPlan) copiers(ctx context.Context) (sessions []string, err error) {
	firsts, lost, err := p.firsts(ctx)
	if err != nil {
		return nil, err
	}
	for info, err := range p.log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		if info.Err != nil {
			p.report.Unread = append(p.report.Unread, info.ID)
			continue
		}
		_, copied := info.First.forkOrigin()
		repaired := lost || info.First.Type == Lost || firsts[info.First.ID]
		if copied || repaired || info.First.Redacted() {
			sessions = append(sessions, info.ID)
		}
	}
	return sessions, nil
}

// firsts are the ids that the sessions to rewrite begin with. One that begins
// with a lost event hides what it began with.
func (p *redactionPlan) firsts(ctx context.Context) (ids map[ulid.ULID]bool, lost bool, err error) {
	ids = map[ulid.ULID]bool{}
	for _, session := range p.order {
		first, err := p.log.firstEvent(ctx, session)
		if err != nil {
			return nil, false, err
		}
		ids[first.ID] = true
		lost = lost || first.Type == Lost
	}
	return ids, lost, nil
}

// copiesIn notes the copies of known events in a session, and adds them to
// those. A damaged session is noted as unread.
func (p *redactionPlan) copiesIn(ctx context.Context, session string, known map[eventKey]bool) (found bool, err error) {
	from, to := p.bounds()
	for e, err := range p.log.store.Read(ctx, session, Span{From: from, To: to}) {
		if errors.Is(err, ErrCorrupt) {
			p.noteUnread(session)
			return found, ctx.Err()
		}
		if err != nil {
			return found, err
		}
		key := eventKey{session, e.Seq}
		if known[key] || !p.copied(&e, known) {
			continue
		}
		known[key], found = true, true
		if e.Redacted() || e.Type.Name() == Lost {
			continue // its content is gone, but it may have been copied before
		}
		p.report.Untouched = append(p.report.Untouched, EventRef{session, e.Seq, e.Type})
	}
	return found, nil
}

// copied reports whether e has the content of an event that goes.
func (p *redactionPlan) copied(e *Event, known map[eventKey]bool) bool {
	origin, copied := e.forkOrigin()
	return copied && known[eventKey{origin.Session, origin.Seq}] || p.ids[e.ID]
}

// unread notes sessions that do not even show in a listing, as all that is in
// them is damaged.
func (p *redactionPlan) unread(ctx context.Context) error {
	for t, err := range p.log.TornTails(ctx) {
		if err != nil && t.Session == "" {
			return err
		}
		if err != nil || t.Whole && t.Offset == 0 {
			p.noteUnread(t.Session)
		}
	}
	return nil
}

func (p *redactionPlan) noteUnread(session string) {
	if !slices.Contains(p.report.Unread, session) {
		p.report.Unread = append(p.report.Unread, session)
	}
}

// bounds are the first and the last seq of what goes. Copies are at the same.
func (p *redactionPlan) bounds() (from, to int64) {
	for _, e := range p.report.Erased {
		if from == 0 || e.Seq < from {
			from = e.Seq
		}
		to = max(to, e.Seq)
	}
	return from, to
}
