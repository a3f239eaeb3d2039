package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// The number of messages of a page grows from firstPage to maxPage, as long as a page
// stays at about pageBytes.
const (
	firstPage = 64
	maxPage   = 1000
	pageBytes = 1 << 20
)

// Read implements eventlog.Store. It asks the leader for the last frame, then any replica
// for the frames before; a single server gets one request for newer events (newer). The next page is read while the caller consumes the current one.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		err := s.read(ctx, session, r, yield)
		var corrupt *eventlog.CorruptError
		if err != nil && !errors.Is(err, errStop) {
			if !errors.As(err, &corrupt) {
				err = fmt.Errorf("read session %q: %w", session, err)
			}
			yield(event.Event{}, err)
		}
	}
}

// errStop ends an iteration early. It is not reported.
var errStop = errors.New("stop")

func (s *Store) read(ctx context.Context, session string, r eventlog.Span, yield func(event.Event, error) bool) error {
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
	st := l.shard(session)
	newer, err := st.newer(ctx, session, r.From)
	if err != nil {
		return err
	}
	if newer != nil {
		return newer.pass(ctx, r, yield)
	}
	v, err := st.view(ctx, session)
	if err != nil {
		return err
	}
	from, to := restrict(r, v.first(), v.tip.head().Seq)
	c := cursor{view: v, from: from, to: to, page: firstPage}
	read := c.forward
	if r.Backward {
		read = c.backward
	}
	if err := read(ctx, yield); err != nil || !v.lacks(r, from, to) {
		return err
	}
	return v.lost
}

// lacks reports whether a span selects lost events after the end of the session. from and to
// are the stored events that it selects.
func (v *view) lacks(r eventlog.Span, from, to int64) bool {
	return v.lost != nil && to == v.tip.head().Seq && (r.To == 0 || r.To > to) && (r.Limit <= 0 || to-from+1 < int64(r.Limit))
}

// restrict returns the seqs that a span selects from a session. Seqs are contiguous.
func restrict(r eventlog.Span, first, last int64) (from, to int64) {
	from, to = max(r.From, first), last
	if r.To > 0 {
		to = min(to, r.To)
	}
	switch n := int64(r.Limit); {
	case n <= 0 || to-from < n:
	case r.Backward:
		from = to - n + 1
	default:
		to = from + n - 1
	}
	return from, to
}

// cursor is the position of a reader in a session.
type cursor struct {
	*view
	from, to  int64 // seqs still to read, inclusive
	pos       uint64
	before    int // messages from pos on that may be before the event from, at most
	page      int // messages of the next page
	refreshes int
}

// pages is a page and the error that ended it early.
type pages struct {
	frames []*frame
	err    error
}

func (c *cursor) forward(ctx context.Context, yield func(event.Event, error) bool) error {
	if c.from > c.to {
		return nil
	}
	due, to := c.from, c.to
	p := c.fetch(ctx)
	for {
		var ahead chan pages
		if p.err == nil && c.from <= c.to && c.page >= maxPage {
			ahead = make(chan pages, 1)
			go func() { ahead <- c.fetch(ctx) }()
		}
		var err error
		if due, err = c.up(ctx, p.frames, due, to, yield); err != nil {
			return err
		}
		switch {
		case p.err != nil:
			return p.err
		case ahead != nil:
			p = <-ahead
		case c.from > c.to:
			return nil
		default:
			p = c.fetch(ctx)
		}
	}
}

// up passes the events of frames from due up to to, and returns the seq after them.
func (c *cursor) up(ctx context.Context, frames []*frame, due, to int64, yield func(event.Event, error) bool) (int64, error) {
	for _, f := range frames {
		for ; due < f.next() && due <= to; due++ {
			if err := c.yield(ctx, f, due, yield); err != nil {
				return due, err
			}
		}
	}
	return due, nil
}

// down passes the events of frames from due down to from, and returns the seq before them.
func (c *cursor) down(ctx context.Context, frames []*frame, due, from int64, yield func(event.Event, error) bool) (int64, error) {
	for _, f := range slices.Backward(frames) {
		for ; due >= max(f.first, from); due-- {
			if err := c.yield(ctx, f, due, yield); err != nil {
				return due, err
			}
		}
	}
	return due, nil
}

// yield passes one event to the caller.
func (c *cursor) yield(ctx context.Context, f *frame, seq int64, yield func(event.Event, error) bool) error {
	if err := c.stream.store.usable(ctx); err != nil {
		return err
	}
	e, err := f.event(c.session, c.stream.place(f.at), seq)
	if err != nil {
		return err
	}
	if !yield(e, nil) {
		return errStop
	}
	return nil
}

// backward reads pages of growing size from the end.
func (c *cursor) backward(ctx context.Context, yield func(event.Event, error) bool) error {
	known := c.tip // a frame after the next page
	size := max(1, c.tip.bytes/max(1, c.tip.next()-c.first()))
	events := int64(firstPage)
	for due := c.to; due >= c.from; {
		part := cursor{view: c.view, from: max(c.from, due-events+1), to: due, page: maxPage}
		frames, err := part.fetchAll(ctx, known)
		if err != nil {
			return c.single(ctx, due, yield)
		}
		if due, err = c.down(ctx, frames, due, c.from, yield); err != nil {
			return err
		}
		known = frames[0]
		events = min(4*events, maxPage, max(1, pageBytes/size))
	}
	return nil
}

// fetchAll reads all frames of the cursor. known is a frame after them, or the last one.
func (c *cursor) fetchAll(ctx context.Context, known *frame) (frames []*frame, err error) {
	if c.from < known.first {
		if err := c.seek(ctx, known); err != nil {
			return nil, err
		}
	}
	for c.from <= c.to {
		p := c.fetch(ctx)
		if p.err != nil {
			return nil, p.err
		}
		frames = append(frames, p.frames...)
	}
	return frames, nil
}

// single reads events backward one by one, up to damage.
func (c *cursor) single(ctx context.Context, due int64, yield func(event.Event, error) bool) error {
	for ; due >= c.from; due-- {
		part := cursor{view: c.view, from: due, to: due, page: 1}
		frames, err := part.fetchAll(ctx, c.tip)
		if err != nil {
			return err
		}
		if err := c.yield(ctx, frames[len(frames)-1], due, yield); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the next page of frames.
func (c *cursor) fetch(ctx context.Context) (p pages) {
	for len(p.frames) == 0 && p.err == nil {
		p.frames, p.err = c.fetchSome(ctx)
	}
	return p
}

func (c *cursor) fetchSome(ctx context.Context) (frames []*frame, err error) {
	if c.from >= c.tip.next() {
		return nil, c.stream.damage(c.session, c.tip.at, c.from, errFrame)
	}
	if c.from >= c.tip.first {
		return c.add(nil, c.tip), nil
	}
	if s := c.index.find(c.from); s != nil {
		f, err := c.replacing(ctx, s)
		if f == nil && err == nil {
			err = c.missing(ctx)
		}
		if f == nil || err != nil {
			return nil, err
		}
		c.pos = max(c.pos, s.old+1)
		return c.add(nil, f), nil
	}
	if c.pos == 0 {
		if err := c.seek(ctx, c.tip); err != nil {
			return nil, err
		}
	}
	messages, err := c.batch(ctx)
	if err != nil {
		return nil, err
	}
	for refreshes, i := c.refreshes, 0; i < len(messages) && c.refreshes == refreshes; i++ {
		m := messages[i]
		if m.at > c.tip.at || c.from > c.to {
			break
		}
		if frames, err = c.accept(ctx, frames, m); err != nil {
			return frames, err
		}
	}
	return frames, nil
}

// seek moves the position to the event from, or to a place at most skipBase messages before
// it. f is a frame after the event.
func (c *cursor) seek(ctx context.Context, f *frame) error {
	if c.pos, _ = c.stream.store.heads.after(c.session, c.from); c.pos > f.beginning().at {
		return nil
	}
	p, err := c.descend(ctx, f, c.from)
	if p.first < c.from {
		c.before = skipBase
	}
	c.pos = p.at
	return err
}

// batch reads the next messages of the session. A replica that lacks messages of the
// leader has none left too early.
func (c *cursor) batch(ctx context.Context) (messages []*message, err error) {
	r := getRequest{Seq: c.pos, Next: c.stream.of(c.session, framesSubject), MaxBytes: batchBytes}
	r.Batch = int(min(int64(c.page), c.to-c.from+1+int64(c.before)))
	c.page, c.before = min(4*c.page, maxPage), 0
	_, err = c.stream.batch(ctx, r, r.Batch, func(m *message) error {
		messages = append(messages, m)
		return c.stream.store.usable(ctx)
	})
	if err == nil && (len(messages) == 0 || messages[0].at > c.tip.at) {
		var m *message
		if m, err = c.stream.known(ctx, r.Next, c.pos); m != nil && m.at <= c.tip.at {
			return []*message{m}, err
		}
		if err == nil {
			err = c.missing(ctx)
		}
		messages = nil
	}
	return messages, err
}

// accept adds the frame of a message, and before it the replaced frames.
func (c *cursor) accept(ctx context.Context, frames []*frame, m *message) ([]*frame, error) {
	if c.index.hides(m.at) {
		c.pos = m.at + 1
		return frames, nil
	}
	f, removed, err := parseFrame(m)
	if err == nil && removed {
		return frames, c.missing(ctx)
	}
	if err != nil {
		return frames, c.stream.damage(c.session, m.at, c.from, err)
	}
	for f.first > c.from && c.from <= c.to {
		s := c.index.find(c.from)
		if s == nil {
			return frames, c.missing(ctx)
		}
		replaced, err := c.replacing(ctx, s)
		if replaced == nil && err == nil {
			err = c.missing(ctx)
		}
		if replaced == nil || err != nil {
			return frames, err
		}
		frames = c.add(frames, replaced)
	}
	c.pos = m.at + 1
	if f.next() <= c.from {
		return frames, nil // before the span
	}
	return c.add(frames, f), nil
}

// add adds a frame, and moves the position after it.
func (c *cursor) add(frames []*frame, f *frame) []*frame {
	c.from = f.next()
	return append(frames, f)
}

// maxRefreshs bounds the rewrites of a session during one read.
const maxRefreshs = 100

// missing is the error of a missing message, or nil if the session was rewritten during
// the read: then the position finds the message that replaces it.
func (c *cursor) missing(ctx context.Context) error {
	if c.refreshes++; c.refreshes > maxRefreshs {
		return c.stream.damage(c.session, c.pos, c.from, errMissing)
	}
	return c.refresh(ctx, c.from)
}
