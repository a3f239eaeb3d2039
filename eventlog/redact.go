package eventlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Redaction reports what redacting erased, and what it did not touch.
type Redaction struct {
	Session string
	// Erased are the events whose content is gone: those asked for, and later
	// snapshot bodies that may hold it, here and in forks.
	Erased []EventRef
	// Blobs are the bodies that are gone: those no other event needs.
	Blobs []Digest
	// Untouched are events that may repeat the content and were left alone:
	// later compactions, and events of copies of the session.
	Untouched []EventRef
}

// EventRef names an event.
type EventRef struct {
	Session string
	Seq     int64
	Type    Type
}

// Redact erases the content of events for good: salt, metadata, data, and blobs
// that no other event needs. The chain still verifies, and what Event.Kept
// lists stays. Snapshot bodies that were taken later, here and in forks, go
// with it. The rewrite and a redacted event that names it are one operation.
//
// Events that are redacted already are passed over. Tree and control types are
// refused with ErrInvalidType; an event that the session shares with its
// parent must be redacted there (ErrInvalidTree).
func (l *Log) Redact(ctx context.Context, session, reason string, seqs ...int64) (Redaction, error) {
	return l.redact(ctx, session, reason, seqs, false)
}

// PlanRedaction is Redact without doing it.
func (l *Log) PlanRedaction(ctx context.Context, session string, seqs ...int64) (Redaction, error) {
	return l.redact(ctx, session, "", seqs, true)
}

func (l *Log) redact(ctx context.Context, session, reason string, seqs []int64, dry bool) (Redaction, error) {
	if err := l.readable(ctx, session); err != nil {
		return Redaction{}, err
	}
	if _, ok := As[Rewriter](l.store); !ok {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, ErrUnsupported)
	}
	unlock, err := l.lockStore(ctx, true)
	if err != nil {
		return Redaction{}, err
	}
	defer unlock()
	plan := redactionPlan{log: l, report: Redaction{Session: session}, seqs: map[string][]int64{}}
	if err := plan.make(ctx, session, seqs); err != nil {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
	}
	if dry {
		return plan.report, nil
	}
	// The session itself comes last: as long as its events are not redacted, a
	// redaction that was interrupted can be asked for again, and does the rest.
	for _, holder := range slices.Backward(plan.order) {
		if err := l.rewrite(ctx, holder, reason, plan.seqs[holder], plan.report.Blobs); err != nil {
			return Redaction{}, fmt.Errorf("redact in session %q: %w", holder, err)
		}
	}
	return plan.report, l.removeBlobs(ctx, plan.report.Blobs)
}

func (l *Log) removeBlobs(ctx context.Context, digests []Digest) error {
	if len(digests) == 0 {
		return nil
	}
	if sweeper, ok := As[Sweeper](l.store); ok {
		return sweeper.RemoveBlobs(ctx, digests)
	}
	blobs, err := l.blobs()
	if err != nil {
		return err
	}
	for _, d := range digests {
		if err := blobs.RemoveBlob(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the lines of the events by redacted ones and appends the
// redacted event, as one operation.
func (l *Log) rewrite(ctx context.Context, session, reason string, seqs []int64, blobs []Digest) error {
	rewriter, _ := As[Rewriter](l.store)
	note, err := l.mint.NewEvent(RedactionNote{Seqs: seqs, Reason: reason, Blobs: blobs})
	if err != nil {
		return err
	}
	note.SessionID, note.Timestamp = session, l.opts.Now()
	return l.alone(ctx, session, func(ctx context.Context, st *state) error {
		defer st.drop()
		var unknown error
		for {
			st.drop()
			if err := l.load(ctx, session, st); err != nil {
				return err
			}
			st.begin(true)
			if _, stands := st.taken(note.ID); stands {
				return nil // the outcome that was unknown is known now
			}
			if unknown != nil {
				return unknown
			}
			e := note
			if err := l.sealNext(ctx, session, st, &e, false); err != nil {
				return err
			}
			replace, err := l.redactedLines(ctx, session, seqs)
			if err != nil {
				return err
			}
			err = rewriter.Rewrite(ctx, session, st.head, replace, []Event{e})
			var conflict *ConflictError
			switch {
			case errors.As(err, &conflict):
				st.cut = conflict.Cut
			case errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil:
				unknown = err
			default:
				if err == nil {
					st.cut = nil
				}
				l.disturb(session)
				return err
			}
		}
	})
}

func (l *Log) redactedLines(ctx context.Context, session string, seqs []int64) ([]Event, error) {
	var lines []Event
	for _, seq := range seqs {
		e, err := l.ownEvent(ctx, session, seq)
		if err != nil {
			return nil, err
		}
		err = l.fetch(ctx, &e)
		if errors.Is(err, ErrBlobNotFound) {
			e.Data, err = jsontext.Value(`{}`), nil // what is gone already keeps nothing
		}
		if err != nil {
			return nil, err
		}
		redacted, err := e.redacted()
		if err != nil {
			return nil, err
		}
		lines = append(lines, redacted)
	}
	return lines, nil
}

// redacted is e without its content: header, hash, commit and what its type
// keeps.
func (e *Event) redacted() (Event, error) {
	kept, err := keptOf(e)
	if err != nil {
		return Event{}, fmt.Errorf("redact event %d: %w", e.Seq, err)
	}
	return e.redactedAs(e.header(), e.Hash(), e.commit(), kept)
}

// redactedAs is the event of a redacted line.
func (e *Event) redactedAs(header []byte, h, commit Hash, kept jsontext.Value) (Event, error) {
	line := append([]byte(`{"crc":"00000000",`), header...)
	line = hex.AppendEncode(append(line, `,"hash":"`...), h[:])
	line = hex.AppendEncode(append(line, `","commit":"`...), commit[:])
	line = append(append(append(line, `","kept":`...), kept...), '}')
	finish(line)
	return ParseLine(line, e.SessionID)
}

// redactionPlan finds what goes with the events to be redacted.
type redactionPlan struct {
	log    *Log
	report Redaction
	order  []string           // the sessions to rewrite
	seqs   map[string][]int64 // and which of their events
	blobs  map[Digest]bool
}

func (p *redactionPlan) make(ctx context.Context, session string, seqs []int64) error {
	p.blobs = map[Digest]bool{}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	for _, seq := range seqs {
		e, err := p.log.ownEvent(ctx, session, seq)
		if err != nil {
			return err
		}
		if info := vocabulary[e.Type.Name()]; info != nil && info.fixed {
			return fmt.Errorf("event %d: %w: %s cannot be redacted", seq, ErrInvalidType, e.Type)
		}
		if !e.Redacted() {
			p.erase(&e)
		}
	}
	if len(p.order) == 0 {
		return nil
	}
	if err := p.followUp(ctx, session, seqs[0]); err != nil {
		return err
	}
	return p.keepShared(ctx)
}

func (p *redactionPlan) erase(e *Event) {
	if p.seqs[e.SessionID] == nil {
		p.order = append(p.order, e.SessionID)
	}
	p.seqs[e.SessionID] = append(p.seqs[e.SessionID], e.Seq)
	p.report.Erased = append(p.report.Erased, EventRef{e.SessionID, e.Seq, e.Type})
	for _, d := range e.Blobs() {
		p.blobs[d] = true
	}
}

// followUp looks at what came after seq, in the session, in the forks that
// share it, and in copies.
func (p *redactionPlan) followUp(ctx context.Context, session string, seq int64) error {
	holders := []string{session}
	for i := 0; i < len(holders); i++ {
		if err := p.later(ctx, holders[i], seq); err != nil {
			return err
		}
		forks, err := p.log.forksSharing(ctx, holders[i], seq)
		if err != nil {
			return err
		}
		holders = append(holders, forks...)
	}
	return p.copies(ctx, session, seq)
}

// later takes in the later snapshot bodies of one session and notes its
// compactions.
func (p *redactionPlan) later(ctx context.Context, session string, seq int64) error {
	for e, err := range p.log.store.Read(ctx, session, Span{From: seq + 1}) {
		if err != nil {
			return err
		}
		switch e.Type.Name() {
		case CompactionTriggered:
			if !e.Redacted() && !slices.Contains(p.seqs[session], e.Seq) {
				p.report.Untouched = append(p.report.Untouched, EventRef{session, e.Seq, e.Type})
			}
		case ProjectionSnapshotted:
			if e.Redacted() || slices.Contains(p.seqs[session], e.Seq) {
				continue
			}
			if err := p.log.fetch(ctx, &e); err != nil {
				return err
			}
			snapshot, _, err := e.Snapshot()
			if err != nil {
				return err
			}
			if len(snapshot.State) > 0 || snapshot.Body.Blob != "" {
				p.erase(&e)
			}
		}
	}
	return nil
}

// copies notes the sessions that copied the event.
func (p *redactionPlan) copies(ctx context.Context, session string, seq int64) error {
	for info, err := range p.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		origin, ok := info.First.forkOrigin()
		if !ok || origin.Session != session && !slices.Contains(p.order, origin.Session) || info.Last.Seq < seq {
			continue
		}
		for e, err := range p.log.store.Read(ctx, info.ID, Span{From: seq, To: seq}) {
			if err != nil {
				return err
			}
			if !e.Redacted() {
				p.report.Untouched = append(p.report.Untouched, EventRef{info.ID, e.Seq, e.Type})
			}
		}
	}
	return nil
}

// keepShared leaves in report.Blobs those that no other event of the store
// needs.
func (p *redactionPlan) keepShared(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	for info, err := range p.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		if info.Err != nil {
			return fmt.Errorf("blobs in use cannot be told: %w", info.Err)
		}
		for e, err := range p.log.store.Read(ctx, info.ID, Span{}) {
			if err != nil {
				return fmt.Errorf("blobs in use cannot be told: %w", err)
			}
			if slices.Contains(p.seqs[info.ID], e.Seq) {
				continue
			}
			for _, d := range e.Blobs() {
				delete(p.blobs, d)
			}
		}
	}
	for d := range p.blobs {
		p.report.Blobs = append(p.report.Blobs, d)
	}
	slices.Sort(p.report.Blobs)
	return nil
}

// forksSharing lists the direct forks of session whose prefix holds seq.
func (l *Log) forksSharing(ctx context.Context, session string, seq int64) ([]string, error) {
	var forks []string
	for info, err := range l.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		if info.First.Type.Name() != SessionForked {
			continue
		}
		f, _, err := info.First.Fork()
		if err != nil {
			return nil, err
		}
		if f.Parent == session && f.Seq >= seq {
			forks = append(forks, info.ID)
		}
	}
	return forks, nil
}

// ownEvent reads an event that the session itself holds, as it is stored.
func (l *Log) ownEvent(ctx context.Context, session string, seq int64) (Event, error) {
	if seq > 0 {
		for e, err := range l.store.Read(ctx, session, Span{From: seq, To: seq}) {
			return e, err
		}
	}
	first, err := l.firstEvent(ctx, session)
	if err != nil {
		return Event{}, err
	}
	if 0 < seq && seq < first.Seq {
		return Event{}, fmt.Errorf("%w: event %d is held by the parent of session %q: redact it there", ErrInvalidTree, seq, session)
	}
	return Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
}

// forkOrigin reads which event an event is a copy of.
func (e *Event) forkOrigin() (origin struct {
	Session string `json:"session_id"`
}, ok bool) {
	value, ok := e.MetadataValue(forkOriginKey)
	if !ok || json.Unmarshal(value, &origin) != nil {
		return origin, false
	}
	return origin, true
}
