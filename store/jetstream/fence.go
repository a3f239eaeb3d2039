package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Each stream has a fence: the last message of a subject. The holder of the exclusive
// store lock raises the fences of all streams. A write that needs the lock is stored only
// if the fence has not moved since the holder got its lock, so a late write of a holder
// that lost its lock fails. A holder that dies leaves the fences raised, and the next
// holder of any lock lowers them.
const (
	fenceSubject = "fence"
	fenceRaised  = "raised"
	fenceLowered = "lowered"
	// guardSubject has the messages that carry the condition of a write. They expire.
	guardSubject = "guard"
	guardTTL     = "60s"
)

var errErasing = errors.New("an erasure is running")

// fence is the state of a stream's fence.
type fence struct {
	at     uint64 // 0 if it was never raised
	raised bool
}

func (st *stream) readFence(ctx context.Context) (fence, error) {
	m, err := st.last(ctx, st.subject(fenceSubject))
	if m == nil || err != nil {
		return fence{}, err
	}
	return fence{m.at, string(m.body) == fenceRaised}, nil
}

// moveFence stores a new message of the fence, after the message expect or after any.
func (st *stream) moveFence(ctx context.Context, state string, expect *fence) (uint64, error) {
	m := &nats.Msg{Subject: st.subject(fenceSubject), Header: nats.Header{}, Data: []byte(state)}
	if expect != nil {
		expectLast(m, expect.at)
	}
	return st.publish(ctx, m)
}

// lowered returns the sequence of a lowered fence. It lowers the fence of a holder that
// died: the caller knows that no exclusive lock is held.
func (st *stream) lowered(ctx context.Context) (uint64, error) {
	for {
		f, err := st.readFence(ctx)
		if err != nil || !f.raised || st.store.options.ReadOnly {
			return f.at, err
		}
		if err := st.lowerFence(ctx, f); err != nil {
			return 0, st.store.failure(err)
		}
	}
}

// lowerFence lowers a fence that has not moved, and removes the messages before.
func (st *stream) lowerFence(ctx context.Context, f fence) error {
	at, err := st.moveFence(ctx, fenceLowered, &f)
	if isCode(err, codeWrongSequence) {
		return nil // another process has moved it
	}
	if err == nil {
		err = st.purge(ctx, st.subject(fenceSubject), at)
	}
	return err
}

// guard is a message that is stored only if the last message of a subject has a sequence. It
// is the first one of a batch.
func (st *stream) guard(subject string, at uint64) *nats.Msg {
	m := &nats.Msg{Subject: st.subject(guardSubject), Header: nats.Header{}}
	m.Header["Nats-TTL"] = []string{guardTTL}
	expectLastOf(m, subject, at)
	return m
}

// fenceGuard is a guard of the fence.
func (st *stream) fenceGuard(fence uint64) *nats.Msg {
	return st.guard(st.subject(fenceSubject), fence)
}

// expectLastOf makes a message conditional on the last message of another subject.
func expectLastOf(m *nats.Msg, subject string, at uint64) {
	expectLast(m, at)
	m.Header["Nats-Expected-Last-Subject-Sequence-Subject"] = []string{subject}
}

// checkFence fails if the fence has moved.
func (st *stream) checkFence(ctx context.Context, expect uint64) error {
	f, err := st.readFence(ctx)
	if err == nil && f.at != expect {
		err = fmt.Errorf("%w: another process has taken it, or erases", eventlog.ErrLockLost)
	}
	return err
}

// held is the store lock of a context; nil if the context has none.
func (s *Store) held(ctx context.Context) *lock {
	l, _ := ctx.Value(lockKey{s}).(*lock)
	return l
}

// fenceOf is the fence that a write under ctx must find in the stream. fenced is false if
// ctx comes from no store lock.
func (st *stream) fenceOf(ctx context.Context) (at uint64, fenced bool) {
	if l := st.store.held(ctx); l != nil {
		return l.fences[st.name], true
	}
	return 0, false
}

// checkBlobs checks that the blobs in use are stored, and returns the fence that the append
// must find: nothing was removed since, if the fence has not moved.
func (l *layout) checkBlobs(ctx context.Context, st *stream, uses []use) (fence uint64, err error) {
	f, err := st.readFence(ctx)
	if err == nil && f.raised {
		var holder *message
		if holder, err = l.control.last(ctx, l.control.subject(exclusiveSubject)); holder != nil {
			return 0, fmt.Errorf("%w: %w", eventlog.ErrLockLost, errErasing)
		} else if err == nil {
			f.at, err = st.lowered(ctx)
		}
	}
	if err != nil {
		return 0, err
	}
	if engine.BlobsElsewhere(ctx) {
		return f.at, nil
	}
	for _, u := range uses {
		if b, err := l.findBlob(ctx, u.digest); err != nil {
			return 0, err
		} else if b == nil {
			return 0, fmt.Errorf("%w: %w: %s", event.ErrInvalidBlob, eventlog.ErrBlobNotFound, u.digest)
		}
	}
	return f.at, nil
}
