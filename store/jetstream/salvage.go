package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/relation"
)

// Fragments implements eventlog.Salvager. Every line of every message is a fragment, and
// so is every missing line.
func (s *Store) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		if err := s.fragments(ctx, session, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Fragment{}, fmt.Errorf("salvage session %q: %w", session, err))
		}
	}
}

func (s *Store) fragments(ctx context.Context, session string, yield func(eventlog.Fragment, error) bool) error {
	if err := checkSession(session); err != nil {
		return err
	}
	l, err := s.reading(ctx)
	if err == nil && l == nil {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return err
	}
	f := salvager{stream: l.shard(session), session: session, yield: yield}
	return f.run(ctx)
}

// salvager yields the fragments of a session.
type salvager struct {
	stream  *stream
	session string
	index   *index
	first   int64 // seq of the session's first event; 0 if unknown
	due     int64 // seq of the next fragment; 0 if unknown
	yield   func(eventlog.Fragment, error) bool
}

// run passes the frames in their order. A replaced frame comes at the place of the frame
// that it replaces.
func (v *salvager) run(ctx context.Context) error {
	t, err := v.stream.tip(ctx, v.session)
	if err != nil {
		return err
	}
	if t.frame == nil && t.err == nil {
		if t.lost != nil {
			return v.lost(ctx, t)
		}
		return eventlog.ErrNotFound
	}
	if v.index, err = v.stream.anyIndex(ctx, v.session, t); err != nil {
		return err
	}
	if t.err == nil {
		v.first = t.frame.beginning().first
	}
	spans := slices.Clone(v.index.spans)
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.old, b.old) })
	replaced := func(before uint64) error {
		for len(spans) > 0 && spans[0].old < before {
			m, err := v.stream.at(ctx, spans[0].at)
			if err == nil && m != nil {
				err = v.message(ctx, m)
			}
			if err != nil {
				return err
			}
			spans = spans[1:]
		}
		return nil
	}
	err = v.stream.each(ctx, v.stream.of(v.session, framesSubject), v.index.base+1, func(m *message) error {
		if err := replaced(m.at); err != nil || v.index.hides(m.at) {
			return err
		}
		return v.message(ctx, m)
	})
	if err == nil {
		err = replaced(maxSeq)
	}
	if err == nil && t.lost != nil {
		err = v.lost(ctx, t)
	}
	return err
}

// lost passes a fragment for the last event of the watermark, and for each event before it
// that no message has.
func (v *salvager) lost(ctx context.Context, t tip) error {
	path, last := v.stream.place(t.watermark.at), t.watermark.seq
	var corrupt *eventlog.CorruptError
	errors.As(t.lost, &corrupt)
	if v.due > 0 {
		if err := v.missing(ctx, path, max(v.due, last-mostMissing), last, corrupt.Cause); err != nil {
			return err
		}
	}
	return v.pass(ctx, eventlog.Fragment{Path: path, Offset: -1, Seq: last, Err: corrupt.Cause})
}

// lastIndex is the index of a tip, or, if the tip is damaged, the newest one.
func (st *stream) lastIndex(ctx context.Context, session string, t tip) (*index, error) {
	if t.err == nil {
		return st.index(ctx, session, t.frame.index)
	}
	m, err := st.last(ctx, st.of(session, indexSubject))
	if m == nil || err != nil {
		return &index{}, err
	}
	ix, err := parseIndex(m)
	return ix, st.damage(session, m.at, 0, err)
}

// anyIndex is the index of a tip, or, if it is damaged, the newest one of the session. A session
// without a readable index has an empty one.
func (st *stream) anyIndex(ctx context.Context, session string, t tip) (*index, error) {
	ix, err := st.lastIndex(ctx, session, t)
	if errors.Is(err, eventlog.ErrCorrupt) && t.err == nil {
		ix, err = st.lastIndex(ctx, session, tip{err: err})
	}
	if errors.Is(err, eventlog.ErrCorrupt) {
		return &index{}, nil
	}
	return ix, err
}

// mostMissing bounds the missing lines in one place: the numbers in a damaged header may
// be anything. A header with other numbers is ignored.
const mostMissing = 10_000

// message passes the lines of a message.
func (v *salvager) message(ctx context.Context, m *message) error {
	f, removed, err := parseFrame(m)
	if removed {
		return nil
	}
	known := err == nil && v.isNear(f)
	path := v.stream.place(m.at)
	if known {
		if err := v.rewritten(ctx, f.first); err != nil {
			return err
		}
		if err := v.missing(ctx, path, v.due, f.first, errMissing); err != nil {
			return err
		}
		v.due = f.next()
	}
	for i, line := range f.lines {
		fragment := eventlog.Fragment{Path: path, Offset: -1, Bytes: int64(len(line)) + 1, Err: errLong}
		if len(line) <= longestLine {
			fragment.Event, fragment.Err = event.Parse(line, "")
		}
		if known && int64(i) < f.count {
			fragment.Seq = f.first + int64(i)
		}
		if err := v.pass(ctx, fragment); err != nil {
			return err
		}
	}
	if known {
		return v.missing(ctx, path, f.first+int64(len(f.lines)), f.next(), errCount)
	}
	return nil
}

// rewritten passes the lines before seq that the messages lack because the session was rewritten
// since the salvager read its index.
func (v *salvager) rewritten(ctx context.Context, seq int64) error {
	due := v.due
	if due == 0 {
		due = v.first
	}
	if due == 0 || due >= seq {
		return nil
	}
	now, err := v.stream.currentView(ctx, v.session)
	if errors.Is(err, eventlog.ErrCorrupt) || err == nil && now.index.at == v.index.at {
		return nil // the lines are missing
	}
	if err != nil {
		return err
	}
	for e, err := range v.stream.store.Read(ctx, v.session, eventlog.Span{From: due, To: seq - 1}) {
		if errors.Is(err, eventlog.ErrCorrupt) {
			return nil
		}
		if err == nil {
			err = v.pass(ctx, eventlog.Fragment{Event: e, Path: v.stream.place(now.index.at), Offset: -1, Seq: e.Seq, Bytes: int64(len(e.Line())) + 1})
		}
		if err != nil {
			return err
		}
		v.due = e.Seq + 1
	}
	return nil
}

// isNear reports whether the numbers of a frame fit to the lines around it.
func (v *salvager) isNear(f *frame) bool {
	return (v.due == 0 || f.first >= v.due && f.first-v.due <= mostMissing) && f.count-int64(len(f.lines)) <= mostMissing
}

// missing passes fragments for missing lines.
func (v *salvager) missing(ctx context.Context, path string, from, to int64, cause error) error {
	if from == 0 {
		return nil
	}
	for seq := from; seq < to; seq++ {
		if err := v.pass(ctx, eventlog.Fragment{Path: path, Offset: -1, Seq: seq, Err: cause}); err != nil {
			return err
		}
	}
	return nil
}

func (v *salvager) pass(ctx context.Context, f eventlog.Fragment) error {
	if err := v.stream.store.usable(ctx); err != nil {
		return err
	}
	if !v.yield(f, nil) {
		return errStop
	}
	return nil
}

// Replace implements eventlog.Salvager. The old messages stay where they are: they are the
// copy. A new index replaces them as a whole.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error) {
	l, err := s.writable(ctx)
	if err == nil {
		err = checkSession(session)
	}
	if err == nil {
		r := rewriting{stream: l.shard(session), session: session}
		copied, err = r.replaceAll(ctx, at, events)
	}
	var outcome *eventlog.UnknownOutcomeError
	if err != nil && !errors.As(err, &outcome) {
		return "", fmt.Errorf("replace session %q: %w", session, err)
	}
	return copied, err
}

func (r *rewriting) replaceAll(ctx context.Context, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error) {
	t, err := r.stream.tip(ctx, r.session)
	if err == nil && t.frame == nil && t.err == nil {
		err = eventlog.ErrNotFound
	}
	if err == nil && t.at != at {
		err = &eventlog.ConflictError{Session: r.session}
	}
	if err != nil {
		return "", err
	}
	old, err := r.stream.anyIndex(ctx, r.session, t)
	if err != nil {
		return "", err
	}
	if err := r.begin(ctx); err != nil {
		return "", err
	}
	r.index.base = at
	r.index.copies = slices.Clone(old.copies)
	for _, s := range old.spans {
		r.index.copies = append(r.index.copies, s.at)
	}
	closing, err := r.storeAll(ctx, events)
	if err == nil {
		closing.index, err = r.storeIndex(ctx)
	}
	if err == nil {
		err = r.reveal(ctx, closing, at)
	}
	if err != nil {
		return "", r.abandon(ctx, err)
	}
	if err := r.renew(ctx, closing); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, messages up to %d", r.stream.placeOf(r.stream.of(r.session, framesSubject)), at), r.stream.finishRewrite(ctx, r.session, closing.at)
}

// renew drops the watermark of the frames that were replaced, which may be lost.
func (r *rewriting) renew(ctx context.Context, closing *frame) error {
	err := r.stream.dropWatermark(ctx, r.session, afterAll)
	r.stream.store.watermarks.note(r.stream, r.session, closing)
	return err
}

// storeAll stores the new events as replacing frames. It returns the frame that makes
// them visible, without its index.
func (r *rewriting) storeAll(ctx context.Context, events iter.Seq2[event.Event, error]) (closing *frame, err error) {
	var page []event.Event
	closing = &frame{id: newID()}
	flush := func() error {
		f := (*frame)(nil).follow(page)
		f.start = closing.start
		closing.bytes += f.bytes
		page = page[:0]
		return r.store(ctx, f, 0)
	}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if closing.start.first == 0 {
			closing.start.first, r.relations = e.Seq, relation.Of(&e)
		}
		r.uses = append(r.uses, usesOf([]event.Event{e})...)
		closing.first, closing.hash = e.Seq+1, e.Hash()
		if page = append(page, e); len(page) == maxPage || lineBytes(page) > pageBytes/2 {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if closing.first == 0 {
		return nil, errors.New("the replacement has no events")
	}
	if len(page) > 0 {
		return closing, flush()
	}
	return closing, nil
}

// reveal stores the frame that makes a replacement visible.
func (r *rewriting) reveal(ctx context.Context, closing *frame, at uint64) error {
	s := r.stream.store
	a := appending{stream: r.stream, session: r.session, frame: closing, before: tip{at: at}, relations: r.relations}
	a.fence, a.fenced = r.stream.fenceOf(ctx)
	var err error
	if a.marks, err = r.stream.marks(r.session, r.uses); err != nil {
		return err
	}
	if err := a.relate(ctx); err != nil {
		return err
	}
	stored, err := a.publish(ctx)
	var open *unknownError
	switch {
	case errors.As(err, &open):
		return a.unknown(s.failure(open.cause))
	case isCode(err, codeWrongSequence):
		now, reading := r.stream.tip(ctx, r.session)
		if reading != nil {
			return a.unknown(reading)
		}
		if now.frame == nil || now.frame.id != closing.id {
			if now.at == at {
				return r.stream.erasingFailure(ctx, err)
			}
			return &eventlog.ConflictError{Session: r.session}
		}
		stored = now.at
	case err != nil:
		return s.failure(err)
	}
	a.stored(stored)
	return nil
}

// Mentioned implements eventlog.Sweeper: the blobs of the lines that repairs replaced.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		if err := s.mentioned(ctx, yield); err != nil && !errors.Is(err, errStop) {
			yield("", fmt.Errorf("read the copies of repairs: %w", err))
		}
	}
}

func (s *Store) mentioned(ctx context.Context, yield func(event.Digest, error) bool) error {
	l, err := s.reading(ctx)
	if l == nil || err != nil {
		return err
	}
	for one, err := range l.tips(ctx, eventlog.Part{}) {
		if err != nil {
			return err
		}
		if one.tip.err == nil && one.tip.frame.index == 0 {
			continue
		}
		ix, err := one.stream.lastIndex(ctx, one.session, one.tip)
		if err != nil {
			return err
		}
		if ix.base > 0 {
			if err := one.mentioned(ctx, ix, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// mentioned passes the blobs of the replaced messages of a session.
func (one *listed) mentioned(ctx context.Context, ix *index, yield func(event.Digest, error) bool) error {
	pass := func(m *message) error {
		f, _, _ := parseFrame(m)
		for _, line := range f.lines {
			e, err := event.Parse(line, "")
			if err != nil {
				continue
			}
			for _, d := range e.Blobs() {
				if !yield(d, nil) {
					return errStop
				}
			}
		}
		return nil
	}
	for _, at := range ix.copies {
		if m, err := one.stream.at(ctx, at); err != nil {
			return err
		} else if m != nil {
			if err := pass(m); err != nil {
				return err
			}
		}
	}
	errDone := errors.New("done")
	err := one.stream.each(ctx, one.subject, 1, func(m *message) error {
		if m.at > ix.base {
			return errDone
		}
		return pass(m)
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}
