package jetstream

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// pendingSubject has a message for each session whose replaced or removed messages are not
// erased yet.
const pendingSubject = "pending"

// erasingSubject has the digests of SetErasing, in the control stream.
const erasingSubject = "erasing"

// pending is the message that records an erasure. Under a store lock it is stored only if
// the fence has not moved.
func (st *stream) pending(ctx context.Context, name string) *nats.Msg {
	m := &nats.Msg{Subject: st.subject(pendingSubject, name), Header: nats.Header{}}
	if at, fenced := st.fenceOf(ctx); fenced {
		expectLastOf(m, st.subject(fenceSubject), at)
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
	return st.repeatable(err)
}

// repeatable is the error of a write that can be repeated without harm: an unknown outcome is
// a failure.
func (st *stream) repeatable(err error) error {
	var open *unknownError
	if errors.As(err, &open) {
		err = open.cause
	}
	return st.store.failure(err)
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
			batch[0] = st.fenceGuard(at)
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
		if _, err := st.publishAll(ctx, batch); err != nil {
			return st.erasingFailure(ctx, err)
		}
	}
	if before == nil {
		return nil
	}
	return st.eraseSubject(ctx, subject, before.at+1)
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
	subject := l.control.subject(erasingSubject)
	m, err := l.control.first(ctx, subject)
	for ; m != nil && err == nil; m, err = l.control.get(ctx, getRequest{Seq: m.at + 1, Next: subject}) {
		for text := range strings.Lines(string(m.body)) {
			e.Blobs = append(e.Blobs, event.Digest(strings.TrimSpace(text)))
		}
	}
	if err != nil {
		return e, err
	}
	for _, st := range l.all() {
		m, err := st.first(ctx, st.subject(pendingSubject, "*"))
		if err != nil {
			return e, err
		}
		e.Bytes = e.Bytes || m != nil
	}
	slices.Sort(e.Blobs)
	e.Blobs = slices.Compact(e.Blobs)
	return e, nil
}
