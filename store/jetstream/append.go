package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/relation"
)

// Append implements eventlog.Store. An append is one message, a frame. The server stores it
// only if the sequence of the session's last frame is the expected one. Marks are stored
// before it or in one batch with it. An append under a
// store lock is stored only if the lock is held. Another append that names blobs checks that
// they are stored, and that no erasure has begun since.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	err := s.append(ctx, session, expect, events, durable)
	if err == nil || errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		return err // these errors name the session already
	}
	return fmt.Errorf("append to session %q: %w", session, err)
}

func (s *Store) append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if err := checkSession(session); err != nil {
		return err
	}
	l, err := s.writable(ctx)
	if err != nil {
		return err
	}
	if durable && !s.options.Synced {
		return ErrNotSynced
	}
	a := appending{stream: l.shard(session), session: session, expect: expect}
	if a.stream.behind != nil {
		return a.stream.behind
	}
	if err := a.begin(ctx); err != nil || len(events) == 0 {
		return err
	}
	if a.frame = a.before.frame.follow(events); a.before.frame != nil && a.frame.first != a.before.frame.next() {
		return fmt.Errorf("%w: the append begins with seq %d, and the head is %v", event.ErrInvalid, a.frame.first, expect)
	}
	a.fence, a.fenced = a.stream.fenceOf(ctx)
	uses := usesOf(events)
	if len(uses) > 0 && !a.fenced {
		a.fenced = true
		if a.fence, err = l.checkBlobs(ctx, a.stream, uses); err != nil {
			return err
		}
	}
	if a.marks, err = a.stream.marks(session, uses); err != nil {
		return err
	}
	if a.before.frame == nil {
		a.relations = relation.Of(&events[0])
	}
	return a.write(ctx)
}

// appending is one write of a frame.
type appending struct {
	stream    *stream
	session   string
	expect    event.Head
	before    tip // the message that the frame follows
	frame     *frame
	relations []string    // new relations of the session
	marks     []*nats.Msg // stored together with the frame
	fenced    bool        // the write fails if the fence of the stream has moved
	fence     uint64      // the sequence of the fence
	rigid     bool        // the frame fits after this message only
}

// begin finds the message of the expected head.
func (a *appending) begin(ctx context.Context) error {
	if f := a.stream.store.heads.get(a.session, a.expect); f != nil {
		a.before = tip{at: f.at, frame: f}
		return nil
	}
	var err error
	if a.before, err = a.stream.tip(ctx, a.session); err != nil {
		return err
	}
	if err := a.compare(a.before); err != nil {
		return err
	}
	if a.before.frame != nil {
		a.stream.store.heads.put(a.session, a.before.frame) // settle reads no older tip
	}
	return nil
}

// compare compares the expected head with a tip.
func (a *appending) compare(t tip) error {
	if err := cmp.Or(t.err, t.lost); err != nil {
		return err
	}
	if t.head() != a.expect {
		return a.conflict(t)
	}
	return nil
}

func (a *appending) conflict(t tip) error {
	if t.frame != nil {
		a.stream.store.heads.put(a.session, t.frame)
	}
	return &eventlog.ConflictError{Session: a.session, Expected: a.expect, Actual: t.head()}
}

func (a *appending) unknown(cause error) error {
	return &eventlog.UnknownOutcomeError{Session: a.session, Head: a.expect, Cause: cause}
}

// maxTries bounds the number of times that a write is tried again because the session
// was removed and created in between.
const maxTries = 8

// write publishes the frame. If the server refuses the expectation, and the frame was sent
// again after its acknowledgement was lost, the message after the expected one decides: it
// is this frame, or a conflict.
func (a *appending) write(ctx context.Context) error {
	s := a.stream.store
	if limit := s.limit(a.stream.client); a.bodyBytes() > limit {
		return fmt.Errorf("%w: the append has %d bytes, and the server takes %d: raise max_payload of the server", event.ErrInvalidSize, a.bodyBytes(), limit)
	}
	resent := false
	for range maxTries {
		if err := a.relate(ctx); err != nil {
			return err
		}
		at, err := a.publish(ctx)
		if err == nil {
			a.stored(at)
			return nil
		}
		var open *unknownError
		if errors.As(err, &open) {
			return a.unknown(s.failure(open.cause))
		}
		var refusal *apiError
		if !isCode(err, codeWrongSequence) || !errors.As(err, &refusal) {
			return s.failure(err)
		}
		resent = resent || refusal.resent
		done, err := a.settle(ctx, resent)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the session changes all the time", eventlog.ErrUnavailable)
}

func (a *appending) bodyBytes() (n int) {
	for _, line := range a.frame.lines {
		n += len(line) + 1
	}
	return n
}

// relate stores the marks of the relations. The tip was read before: if the session is removed
// and the marks are erased, the frame no longer fits.
func (a *appending) relate(ctx context.Context) error {
	return parallel(a.relations, func(name string) error {
		_, err := a.stream.publish(ctx, &nats.Msg{Subject: a.stream.related(name, encodeName(a.session))})
		return a.stream.repeatable(err)
	})
}

// publish sends the frame, together with its marks and with a guard if it is fenced.
func (a *appending) publish(ctx context.Context) (uint64, error) {
	m := a.frame.message(a.stream.of(a.session, framesSubject), a.before.at)
	var batch []*nats.Msg
	if a.fenced {
		batch = append(batch, a.stream.fenceGuard(a.fence))
	}
	if batch = append(append(batch, a.marks...), m); len(batch) > 1 {
		return a.stream.publishAll(ctx, batch)
	}
	m.Header["Nats-Msg-Id"] = []string{a.frame.id}
	return a.stream.publish(ctx, m)
}

// stored completes the write of the frame.
func (a *appending) stored(at uint64) {
	a.frame.at = at
	s := a.stream.store
	s.heads.put(a.session, a.frame)
	s.watermarks.note(a.stream, a.session, a.frame)
	s.changes.Publish(a.session)
}

// settle finds out why the server refused the expectation. done is true if the frame is
// stored; it was sent more than once then. Without an error and not done, the write may be
// tried again.
func (a *appending) settle(ctx context.Context, resent bool) (done bool, err error) {
	now, err := a.stream.tip(ctx, a.session)
	if err != nil {
		return false, a.unknown(err)
	}
	own := now.frame
	if resent && now.at > a.before.at && !(now.frame != nil && now.frame.follows(a.before.at)) {
		if own, err = a.afterHead(ctx); err != nil {
			return false, a.unknown(err)
		}
	}
	if own != nil && own.id == a.frame.id {
		a.stored(own.at)
		return true, nil
	}
	if err := a.compare(now); err != nil {
		return false, err
	}
	if now.at != a.before.at {
		if a.rigid {
			return false, fmt.Errorf("%w: the session was rewritten meanwhile", eventlog.ErrUnavailable)
		}
		a.again(now)
		return false, nil
	}
	if a.fenced {
		return false, a.stream.checkFence(ctx, a.fence)
	}
	return false, nil // the answer of an old leader
}

var errReplaced = errors.New("the messages after the head were replaced meanwhile")

// afterHead returns the frame that took the place after the expected head; nil if it is
// no frame of events. The error errReplaced means that nobody can know.
func (a *appending) afterHead(ctx context.Context) (*frame, error) {
	m, err := a.stream.known(ctx, a.stream.of(a.session, framesSubject), a.before.at+1)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errReplaced
	}
	f, removed, parsing := parseFrame(m)
	if removed || parsing != nil {
		return nil, nil
	}
	if a.before.frame != nil && f.n > a.before.frame.n+1 {
		return nil, errReplaced
	}
	return f, nil
}

// again prepares another try after a message with the same head: a session that was
// removed, or a rewrite without events.
func (a *appending) again(now tip) {
	a.before = now
	next := *a.frame
	next.n, next.index, next.start, next.back, next.bytes = 0, 0, place{first: next.first}, nil, int64(a.bodyBytes())
	if f := now.frame; f != nil {
		next.n, next.index, next.start, next.back, next.bytes = f.n+1, f.index, f.beginning(), f.skip(), f.bytes+next.bytes
	}
	a.frame = &next
}

const (
	// headerBytes is the part of a message's size that is left for its subject and headers.
	headerBytes = 4 << 10
	// leastPayload is the smallest max_payload of a server that stores a log.
	leastPayload = 16 << 10
)

// MaxAppend implements eventlog.Limiter: the server bounds the size of a message.
func (s *Store) MaxAppend(ctx context.Context) (int, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	return s.limit(c), checkPayload(c)
}

// checkPayload refuses a server whose messages are too small for a log.
func checkPayload(c *client) error {
	if has := c.nc.MaxPayload(); has < leastPayload {
		return fmt.Errorf("%w: the server takes messages of %d bytes: raise its max_payload to %d or more", ErrForeign, has, leastPayload)
	}
	return nil
}

func (s *Store) limit(c *client) int { return int(c.nc.MaxPayload()) - headerBytes }
