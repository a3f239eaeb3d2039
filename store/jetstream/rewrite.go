package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Rewrite implements eventlog.Eraser. The replacing messages and their index are stored
// first; the message with the appended events names the index, which makes them visible.
// Then the replaced messages are erased.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = checkSession(session)
	}
	if err != nil {
		return fmt.Errorf("rewrite %q: %w", session, err)
	}
	r := rewriting{stream: l.shard(session), session: session}
	err = r.run(ctx, expect, replace, add)
	if errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		return err // these errors name the session already
	}
	return wrap(fmt.Sprintf("rewrite %q", session), err)
}

// rewriting replaces frames of a session.
type rewriting struct {
	stream  *stream
	session string
	view    *view
	index   index    // the new one
	grown   int64    // bytes that the new lines have more than the old ones
	stored  []uint64 // the messages that are invisible before a frame names the index

	old       [][]byte // the replaced lines
	relations []string // to mark
	uses      []use    // to mark
}

func (r *rewriting) run(ctx context.Context, expect event.Head, replace, add []event.Event) error {
	at, err := r.commit(ctx, expect, replace, add)
	if err != nil {
		return r.abandon(ctx, err)
	}
	if len(replace) == 0 {
		return nil
	}
	return r.stream.finishRewrite(ctx, r.session, at)
}

// commit makes the new lines visible, and returns the sequence of the message that does.
func (r *rewriting) commit(ctx context.Context, expect event.Head, replace, add []event.Event) (uint64, error) {
	t, err := r.stream.currentTip(ctx, r.session)
	if err != nil {
		return 0, err
	}
	a := appending{stream: r.stream, session: r.session, expect: expect, before: t, rigid: true}
	if err := a.compare(t); err != nil {
		return 0, err
	}
	if t.frame == nil {
		return 0, eventlog.ErrNotFound
	}
	if len(replace)+len(add) == 0 {
		return 0, nil
	}
	a.frame = t.frame.follow(add)
	a.fence, a.fenced = r.stream.fenceOf(ctx)
	if len(replace) > 0 {
		if err := r.prepare(ctx, t, replace); err != nil {
			return 0, err
		}
		a.frame.index = r.index.at
		a.frame.bytes += r.grown
	}
	a.relations = r.relations
	if a.marks, err = r.stream.marks(r.session, append(r.uses, usesOf(add)...)); err != nil {
		return 0, err
	}
	err = a.write(ctx)
	return a.frame.at, err
}

// prepare stores the replacing frames and their index. First it finishes an interrupted
// erasure, whose index the new one replaces.
func (r *rewriting) prepare(ctx context.Context, t tip, replace []event.Event) error {
	ix, err := r.stream.index(ctx, r.session, t.frame.index)
	if err != nil {
		return err
	}
	r.view = &view{stream: r.stream, session: r.session, tip: t.frame, index: ix}
	unfinished, err := r.stream.last(ctx, r.stream.subject(pendingSubject, encodeName(r.session)))
	if err == nil && unfinished != nil {
		err = r.stream.finish(ctx, r.session, t.at+1)
	}
	if err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.replace(ctx, replace); err != nil {
		return err
	}
	if err := r.remark(ctx, replace); err != nil {
		return err
	}
	r.index.at, err = r.storeIndex(ctx)
	return err
}

// abandon erases the messages that nobody will see, unless the outcome is unknown: then
// the record of the erasure stays.
func (r *rewriting) abandon(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, eventlog.ErrUnknownOutcome) || errors.Is(err, eventlog.ErrLockLost) {
		return err
	}
	return errors.Join(err, r.stream.erase(ctx, r.stored))
}

// begin records the erasure.
func (r *rewriting) begin(ctx context.Context) error {
	at, err := r.stream.publish(ctx, r.stream.pending(ctx, encodeName(r.session)))
	if err != nil {
		return r.stream.erasingFailure(ctx, err)
	}
	r.stored = append(r.stored, at)
	return nil
}

// replace stores the frames that have other lines.
func (r *rewriting) replace(ctx context.Context, events []event.Event) error {
	r.index.base, r.index.copies = r.view.index.base, r.view.index.copies
	r.index.spans = slices.Clone(r.view.index.spans)
	lines := make(map[int64][]byte, len(events))
	for i := range events {
		lines[events[i].Seq] = events[i].Line()
	}
	for i := range events {
		seq := events[i].Seq
		if _, due := lines[seq]; !due {
			continue // its frame has another of the events
		}
		if seq < r.view.first() || seq > r.view.tip.head().Seq {
			return fmt.Errorf("seq %d: %w", seq, eventlog.ErrEventNotFound)
		}
		c := cursor{view: r.view, from: seq, to: seq, page: 1}
		frames, err := c.fetchAll(ctx, r.view.tip)
		if err != nil {
			return err
		}
		if err := r.replaceFrame(ctx, frames[len(frames)-1], lines); err != nil {
			return err
		}
	}
	return nil
}

// replaceFrame stores a frame with other lines, and removes them from the map.
func (r *rewriting) replaceFrame(ctx context.Context, f *frame, lines map[int64][]byte) error {
	if int64(len(f.lines)) != f.count {
		return r.stream.damage(r.session, f.at, f.first, errCount)
	}
	replaced := *f
	replaced.lines = slices.Clone(f.lines)
	for i := range replaced.lines {
		seq := f.first + int64(i)
		if line, ok := lines[seq]; ok {
			r.grown += int64(len(line) - len(replaced.lines[i]))
			r.old = append(r.old, replaced.lines[i])
			replaced.lines[i] = line
			delete(lines, seq)
		}
	}
	old := f.at
	if s := r.view.index.find(f.first); s != nil {
		old = s.old
	}
	r.index.spans = slices.DeleteFunc(r.index.spans, func(s span) bool { return f.first <= s.first && s.first < f.next() })
	return r.store(ctx, &replaced, old)
}

// store stores a replacing frame, in several messages if it is too large for one.
func (r *rewriting) store(ctx context.Context, f *frame, old uint64) error {
	limit := r.stream.store.limit(r.stream.client)
	for {
		part, rest, err := f.split(limit)
		if err != nil {
			return err
		}
		m := part.message(r.stream.of(r.session, replacedSubject), 0)
		m.Header = nats.Header{frameHeader: m.Header[frameHeader], "Nats-Msg-Id": []string{newID()}}
		at, err := r.stream.publish(ctx, m)
		if err != nil {
			return r.stream.erasingFailure(ctx, err)
		}
		r.stored = append(r.stored, at)
		r.index.spans = append(r.index.spans, span{part.first, part.count, old, at})
		if rest == nil {
			return nil
		}
		f = rest
	}
}

// split returns the part of a frame that fits into a message, and the rest.
func (f *frame) split(limit int) (part, rest *frame, err error) {
	size := 0
	for i, line := range f.lines {
		if size += len(line) + 1; size <= limit || i == 0 {
			continue
		}
		first, second := *f, *f
		first.lines, second.lines = f.lines[:i], f.lines[i:]
		first.count, second.count = int64(i), f.count-int64(i)
		second.first += int64(i)
		last, err := event.Parse(f.lines[i-1], "")
		if err != nil {
			return nil, nil, err
		}
		first.hash = last.Hash()
		return &first, &second, nil
	}
	return f, nil, nil
}

// storeIndex stores the new index and returns its sequence.
func (r *rewriting) storeIndex(ctx context.Context) (uint64, error) {
	r.index.arrange()
	m := &nats.Msg{Subject: r.stream.of(r.session, indexSubject), Header: nats.Header{}, Data: r.index.encode()}
	m.Header["Nats-Msg-Id"] = []string{newID()}
	if limit := r.stream.store.limit(r.stream.client); len(m.Data) > limit {
		return 0, fmt.Errorf("%w: the index of %d replaced messages has %d bytes, and the server takes %d: raise max_payload of the server",
			event.ErrInvalidSize, len(r.index.spans), len(m.Data), limit)
	}
	at, err := r.stream.publish(ctx, m)
	if err != nil {
		return 0, r.stream.erasingFailure(ctx, err)
	}
	r.stored = append(r.stored, at)
	return at, nil
}
