package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// checkHeads compares the known heads of a session with its lineage.
func (v *Verifier) checkHeads(ctx context.Context, r *Report) {
	for _, known := range v.heads[r.Session] {
		if detail := v.missingHead(ctx, r, known); detail != "" && ctx.Err() == nil {
			r.addDefect(eventlog.Defect{Session: r.Session, Seq: known.Seq, Offset: -1, Rule: RuleHistory, Detail: detail})
		}
	}
}

// noteErasures notes the erasures since the oldest known head: they change no hash.
func (v *Verifier) noteErasures(ctx context.Context, r *Report) {
	heads := v.heads[r.Session]
	if len(heads) == 0 {
		return
	}
	since := slices.MinFunc(heads, func(a, b event.Head) int { return cmp.Compare(a.Seq, b.Seq) }).Seq
	if since >= r.Head.Seq {
		return
	}
	for e, err := range v.log.Read(ctx, r.Session, eventlog.From(since+1).Own().Bare()) {
		if err != nil {
			return // a defect of the session already
		}
		note, ok, err := event.Decode[event.RedactionNote](&e)
		if !ok || err != nil || e.Copied() {
			continue
		}
		r.addNote(eventlog.Defect{Session: r.Session, Offset: -1, Rule: RuleHistory,
			Detail: fmt.Sprintf("event %d erased the content of %d events since the known head, by %q: %q", e.Seq, len(note.Seqs), note.By, note.Reason)})
	}
}

// missingHead says why a known head is not in the session; it is empty if the head is.
func (v *Verifier) missingHead(ctx context.Context, r *Report, known event.Head) string {
	if known.Seq > r.Head.Seq {
		return fmt.Sprintf("rolled back: the session once had %v and ends at %v", known, r.Head)
	}
	for e, err := range v.log.Read(ctx, r.Session, eventlog.Between(known.Seq, known.Seq)) {
		switch {
		case errors.Is(err, eventlog.ErrCorrupt):
			return fmt.Sprintf("the event of the known head %v is damaged: %v", known, err)
		case err != nil:
			return fmt.Sprintf("the event of the known head %v cannot be read: %v", known, err)
		case e.Hash() == known.Hash:
			return ""
		default:
			return fmt.Sprintf("replaced: the session once had %v and has %v there", known, e.Head())
		}
	}
	return fmt.Sprintf("the session has no event of the known head %v", known)
}

// missingSession reports a session that has known heads and is not in the store.
func (v *Verifier) missingSession(ctx context.Context, session string) (Report, error) {
	r := Report{Session: session}
	marks, err := v.removals(ctx)
	if err != nil {
		return r, err
	}
	known := slices.MaxFunc(v.heads[session], func(a, b event.Head) int { return cmp.Compare(a.Seq, b.Seq) })
	d := eventlog.Defect{Session: session, Seq: known.Seq, Offset: -1, Rule: RuleHistory, Detail: fmt.Sprintf("missing: the session once had %v", known)}
	if marks.Removed(session) {
		d.Seq, d.Detail = 0, "the session was removed on purpose"
		r.addNote(d)
		return r, nil
	}
	r.addDefect(d)
	return r, nil
}
