package erase

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// copies adds the copies of the erased events, and copies of copies, to the report. A
// copy names its original, or has the same id after a repair.
func (p *plan) copies(ctx context.Context) error {
	sessions, err := p.copiers(ctx)
	if err != nil {
		return err
	}
	if err := p.unlisted(ctx); err != nil {
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

// copiers lists the sessions that may have copies: sessions that begin with a copied
// event, or with the first event of a session to rewrite.
func (p *plan) copiers(ctx context.Context) (sessions []string, err error) {
	firsts, lost, err := p.firsts(ctx)
	if err != nil {
		return nil, err
	}
	for info, err := range p.relatives(ctx, lost) {
		if err != nil {
			return nil, err
		}
		if info.Err != nil {
			p.noteUnread(info.ID)
			continue
		}
		repaired := lost || info.First.Type == event.Lost || firsts[info.First.ID]
		if _, copied := info.First.Origin(); copied || repaired || info.First.Redacted() {
			sessions = append(sessions, info.ID)
		}
	}
	return sessions, nil
}

// relatives yields the sessions that may have copies of the events to erase. They are all
// sessions if the relations of a session to rewrite are lost, or the store does not know
// relations. Else they descend from the sessions to rewrite, or from their ancestors: a
// copy may be of a fork that was removed.
func (p *plan) relatives(ctx context.Context, lost bool) iter.Seq2[eventlog.SessionInfo, error] {
	if _, able := eventlog.As[eventlog.Relater](p.log.Store()); !able || lost {
		return p.log.Sessions(ctx)
	}
	return func(yield func(eventlog.SessionInfo, error) bool) {
		seen, done := map[string]bool{}, map[string]bool{}
		for queue := p.withAncestors(ctx); len(queue) > 0; queue = queue[1:] {
			if done[queue[0]] {
				continue
			}
			done[queue[0]] = true
			for info, err := range p.log.Related(ctx, queue[0]) {
				if seen[info.ID] && err == nil {
					continue
				}
				seen[info.ID] = true
				if !yield(info, err) || err != nil {
					return
				}
				queue = append(queue, info.ID)
			}
		}
	}
}

// withAncestors lists the sessions to rewrite, and their ancestors as far as they are
// readable.
func (p *plan) withAncestors(ctx context.Context) []string {
	sessions := slices.Clone(p.order)
	for _, session := range p.order {
		for a, err := range p.log.Ancestors(ctx, session) {
			if err != nil {
				break
			}
			sessions = append(sessions, a.Session)
		}
	}
	return sessions
}

// firsts are the ids of the first events of the sessions to rewrite. lost says that
// one of them is a lost event, which hides the original one.
func (p *plan) firsts(ctx context.Context) (ids map[ulid.ULID]bool, lost bool, err error) {
	ids = map[ulid.ULID]bool{}
	for _, session := range p.order {
		for first, err := range p.log.Store().Read(ctx, session, eventlog.Span{Limit: 1}) {
			if err != nil {
				return nil, false, err
			}
			ids[first.ID] = true
			lost = lost || first.Type == event.Lost
		}
	}
	return ids, lost, nil
}

// copiesIn notes the copies of known events in a session, and adds them to known. A
// damaged session is noted as unread.
func (p *plan) copiesIn(ctx context.Context, session string, known map[eventKey]bool) (found bool, err error) {
	from, to := p.bounds()
	for e, err := range p.log.Store().Read(ctx, session, eventlog.Span{From: from, To: to}) {
		if errors.Is(err, eventlog.ErrCorrupt) {
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
		if e.Redacted() || e.Type.Name() == event.Lost {
			continue // its content is erased, but it may have been copied before
		}
		p.list(session, e.Seq, e.Type)
	}
	return found, nil
}

// copied reports whether e has the content of an erased event.
func (p *plan) copied(e *event.Event, known map[eventKey]bool) bool {
	origin, copied := e.Origin()
	return copied && known[eventKey{origin.Session, origin.Seq}] || p.ids[e.ID]
}

// unlisted notes sessions that the listing omits because all of their bytes are
// damaged.
func (p *plan) unlisted(ctx context.Context) error {
	tails, ok := eventlog.As[eventlog.TailKeeper](p.log.Store())
	if !ok {
		return nil
	}
	for t, err := range tails.TornTails(ctx, "") {
		if err != nil && t.Session == "" {
			return err
		}
		if err != nil || t.Whole && t.Offset == 0 {
			p.noteUnread(t.Session)
		}
	}
	return nil
}

func (p *plan) noteUnread(session string) {
	if !p.unread[session] {
		p.unread[session] = true
		p.report.Unread = append(p.report.Unread, session)
	}
}

// bounds are the first and the last seq of the erased events. Copies have the same
// seqs.
func (p *plan) bounds() (from, to int64) {
	for _, e := range p.report.Erased {
		if from == 0 || e.Seq < from {
			from = e.Seq
		}
		to = max(to, e.Seq)
	}
	return from, to
}
