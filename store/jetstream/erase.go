package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// pendingSubject has a message for each session whose replaced or removed messages are not
// erased yet.
const pendingSubject = "pending"

// erasingSubject has the digests of SetErasing, in the control stream.
const erasingSubject = "erasing"

// runningUpload is the age at which an upload of a blob counts as interrupted.
const runningUpload = time.Hour

// pending is the message that records an erasure. Under a store lock it is stored only if
// the fence has not moved.
func (st *stream) pending(ctx context.Context, name string) *nats.Msg {
	m := &nats.Msg{Subject: st.subject(pendingSubject, name), Header: nats.Header{}}
	if at, fenced := st.fenceOf(ctx); fenced {
		st.expectFence(m, at)
	}
	return m
}

// erasingFailure is the error of a write that erases. A refused condition is a lost lock,
// if the fence has moved.
func (st *stream) erasingFailure(ctx context.Context, err error) error {
	if at, fenced := st.fenceOf(ctx); fenced && isCode(err, codeWrongSequence) {
		if lost := st.checkFence(ctx, at); lost != nil {
			return lost
		}
	}
	var open *unknownError
	if errors.As(err, &open) {
		return st.store.failure(open.cause) // the write can be repeated without harm
	}
	return st.store.failure(err)
}

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
	index   index // the new one
	grown   int64 // bytes that the new lines have more than the old ones
}

func (r *rewriting) run(ctx context.Context, expect event.Head, replace, add []event.Event) error {
	t, err := r.stream.tip(ctx, r.session)
	if err != nil {
		return err
	}
	a := appending{stream: r.stream, session: r.session, expect: expect, before: t, rigid: true}
	if err := a.compare(t); err != nil {
		return err
	}
	if t.frame == nil {
		return eventlog.ErrNotFound
	}
	ix, err := r.stream.index(ctx, r.session, t.frame.index)
	if err != nil {
		return err
	}
	r.view = &view{r.stream, r.session, t.frame, ix}
	a.frame = t.frame.follow(add)
	a.fence, a.fenced = r.stream.fenceOf(ctx)
	if len(replace) == 0 {
		if len(add) == 0 {
			return nil
		}
		return a.write(ctx)
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	err = r.replace(ctx, replace)
	if err == nil {
		a.frame.index, err = r.storeIndex(ctx)
	}
	if err == nil {
		a.frame.bytes += r.grown
		err = a.write(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	return errors.Join(err, r.stream.finish(ctx, r.session))
}

// begin records the erasure.
func (r *rewriting) begin(ctx context.Context) error {
	_, err := r.stream.client.publish(ctx, r.stream.pending(ctx, encodeName(r.session)))
	if err != nil {
		return r.stream.erasingFailure(ctx, err)
	}
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
		at, err := r.stream.client.publish(ctx, m)
		if err != nil {
			return r.stream.erasingFailure(ctx, err)
		}
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
	at, err := r.stream.client.publish(ctx, m)
	if err != nil {
		return 0, r.stream.erasingFailure(ctx, err)
	}
	return at, nil
}

// finish erases the messages of a session that no reader needs, then the record of the
// erasure.
func (st *stream) finish(ctx context.Context, session string) error {
	t, err := st.tip(ctx, session)
	if err == nil {
		err = t.err
	}
	if err != nil {
		return err
	}
	if t.frame == nil {
		err = st.eraseSubject(ctx, st.of(session, "*"), t.at)
	} else {
		err = st.finishRewrite(ctx, session, t.frame)
	}
	if err != nil {
		return err
	}
	name := st.subject(pendingSubject, encodeName(session))
	m, err := st.last(ctx, name)
	if m == nil || err != nil {
		return err
	}
	return st.store.failure(st.purge(ctx, name, m.at+1))
}

// finishRewrite erases replaced frames, and replacing messages and indexes that the
// current index does not name.
func (st *stream) finishRewrite(ctx context.Context, session string, tip *frame) error {
	ix, err := st.index(ctx, session, tip.index)
	if err != nil {
		return err
	}
	keep := map[uint64]bool{ix.at: true}
	for _, s := range ix.spans {
		keep[s.at] = true
	}
	for _, at := range ix.copies {
		keep[at] = true
	}
	var unneeded []uint64
	for _, kind := range []string{replacedSubject, indexSubject} {
		err := st.each(ctx, st.of(session, kind), 1, func(m *message) error {
			if !keep[m.at] {
				unneeded = append(unneeded, m.at)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for at := range ix.old {
		unneeded = append(unneeded, at)
	}
	return st.erase(ctx, unneeded)
}

// RemoveSession implements eventlog.Eraser. It removes the copies that repairs made of the
// session too.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	return wrap(fmt.Sprintf("remove session %q", session), s.removeSession(ctx, session, expect))
}

func (s *Store) removeSession(ctx context.Context, session string, expect event.Head) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = checkSession(session)
	}
	if err != nil {
		return err
	}
	st := l.shard(session)
	t, err := st.removable(ctx, session, expect)
	if err != nil {
		return err
	}
	removal := &nats.Msg{Subject: st.of(session, framesSubject), Header: nats.Header{frameHeader: []string{tombstone}}}
	expectLast(removal, t.at)
	if _, err := st.client.publishAll(ctx, []*nats.Msg{st.pending(ctx, encodeName(session)), removal}); err != nil {
		if !isCode(err, codeWrongSequence) {
			return st.erasingFailure(ctx, err)
		}
		now, reading := st.tip(ctx, session)
		switch {
		case reading != nil:
			return reading
		case now.at != t.at && now.frame != nil:
			return &eventlog.ConflictError{Session: session, Expected: expect, Actual: now.head()}
		case now.at == t.at:
			return st.erasingFailure(ctx, err)
		} // it is removed: by this call, whose answer was lost, or by another one
	}
	s.heads.forget(session)
	s.changes.Publish(session)
	return st.finish(ctx, session)
}

// removable returns the tip of a session that may be removed: its head is expect, or
// expect is zero and its newest event is unreadable.
func (st *stream) removable(ctx context.Context, session string, expect event.Head) (tip, error) {
	t, err := st.tip(ctx, session)
	if err != nil {
		return t, err
	}
	missing := t.frame == nil && t.err == nil
	switch {
	case missing && expect.IsZero():
		return t, eventlog.ErrNotFound
	case expect.IsZero() && t.err != nil:
		if errors.Is(t.err, event.ErrVersion) {
			return t, t.err
		}
		return t, nil
	case t.err != nil:
		return t, t.err
	case !missing && t.head() == expect:
		return t, nil
	case !missing && expect.IsZero():
		v, err := st.view(ctx, session)
		if err != nil {
			return t, err
		}
		if _, err := v.event(ctx, t.head().Seq); errors.Is(err, eventlog.ErrCorrupt) {
			return t, nil
		}
	}
	return t, &eventlog.ConflictError{Session: session, Expected: expect, Actual: t.head()}
}

// digestsInMessage bounds the digests of one message of SetErasing.
const digestsInMessage = 5000

// SetErasing implements eventlog.Eraser.
func (s *Store) SetErasing(ctx context.Context, digests []event.Digest) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = l.setErasing(ctx, digests)
	}
	return wrap("record an erasure", err)
}

func (l *layout) setErasing(ctx context.Context, digests []event.Digest) error {
	st := l.control
	subject := st.subject(erasingSubject)
	before, err := st.last(ctx, subject)
	if err != nil {
		return err
	}
	if len(digests) > 0 {
		batch := []*nats.Msg{st.pending(ctx, "control")}
		if _, fenced := st.fenceOf(ctx); fenced {
			at, _ := st.fenceOf(ctx)
			batch[0] = st.guard(at)
		} else {
			batch = nil
		}
		for page := range slices.Chunk(digests, digestsInMessage) {
			m := &nats.Msg{Subject: subject, Header: nats.Header{}}
			for _, d := range page {
				m.Data = append(append(m.Data, d...), '\n')
			}
			batch = append(batch, m)
		}
		if _, err := st.client.publishAll(ctx, batch); err != nil {
			return st.erasingFailure(ctx, err)
		}
	}
	if before == nil {
		return nil
	}
	return st.store.failure(st.purge(ctx, subject, before.at+1))
}

// Erasing implements eventlog.Eraser.
func (s *Store) Erasing(ctx context.Context) (e eventlog.Erasing, err error) {
	l, err := s.reading(ctx)
	if l != nil && err == nil {
		e, err = l.erasing(ctx)
	}
	return e, wrap("read the running erasure", err)
}

func (l *layout) erasing(ctx context.Context) (e eventlog.Erasing, err error) {
	from := uint64(1)
	for {
		m, err := l.control.next(ctx, l.control.subject(erasingSubject), from)
		if err != nil {
			return e, err
		}
		if m == nil {
			break
		}
		for text := range strings.Lines(string(m.body)) {
			e.Blobs = append(e.Blobs, event.Digest(strings.TrimSpace(text)))
		}
		from = m.at + 1
	}
	for _, st := range l.all() {
		m, err := st.next(ctx, st.subject(pendingSubject, "*"), 1)
		if err != nil {
			return e, err
		}
		e.Bytes = e.Bytes || m != nil
	}
	slices.Sort(e.Blobs)
	e.Blobs = slices.Compact(e.Blobs)
	return e, nil
}

// Sweep implements eventlog.Sweeper. A leftover is an interrupted upload of a blob.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.Leftover, error] {
	return func(yield func(eventlog.Leftover, error) bool) {
		if err := s.sweep(ctx, remove, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Leftover{}, fmt.Errorf("sweep: %w", err))
		}
	}
}

func (s *Store) sweep(ctx context.Context, remove bool, yield func(eventlog.Leftover, error) bool) error {
	open := s.reading
	if remove {
		open = s.writable
	}
	l, err := open(ctx)
	if l == nil || err != nil {
		return err
	}
	if remove {
		if err := l.finishAll(ctx); err != nil {
			return err
		}
	}
	uploads, err := l.uploads(ctx)
	if err != nil {
		return err
	}
	for subject, size := range uploads {
		if remove {
			if err := l.blobs.eraseSubject(ctx, subject, 1<<62); err != nil {
				return err
			}
		}
		if !yield(eventlog.Leftover{Path: l.blobs.placeOf(subject), Bytes: size}, nil) {
			return errStop
		}
	}
	return nil
}

// finishAll finishes the interrupted erasures of all sessions and blobs.
func (l *layout) finishAll(ctx context.Context) error {
	for _, st := range l.shards {
		subjects, err := st.subjects(ctx, st.subject(pendingSubject, "*"))
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			session, ok := st.decodeLast(subject)
			if !ok {
				continue
			}
			if err := st.finish(ctx, session); err != nil {
				return fmt.Errorf("session %q: %w", session, err)
			}
		}
	}
	return l.finishBlobs(ctx)
}
