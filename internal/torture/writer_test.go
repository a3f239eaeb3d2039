//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// writer runs its steps in order. A killed predecessor may have stored the first of
// them.
type writer struct {
	log   *eventlog.Log
	seed  uint64
	name  int
	pause time.Duration // between two steps
	// report is called before each step, and after it with the seq of its last event.
	report func(verb string, n int, seq int64)
}

// run runs the steps from from up to to, or forever if to is 0.
func (w *writer) run(ctx context.Context, from, to int) error {
	for n := from; to == 0 || n < to; n++ {
		s := stepOf(w.seed, w.name, n)
		w.report(tried, n, 0)
		seq, err := w.do(ctx, s, n == from)
		for isOutage(err) {
			time.Sleep(10 * time.Millisecond)
			seq, err = w.do(ctx, s, true)
		}
		if err != nil {
			return fmt.Errorf("step %v (%s in %q): %w", s, s.kind, s.session, err)
		}
		w.report(acknowledged, n, seq)
		time.Sleep(w.pause)
	}
	return nil
}

// isOutage reports whether a step failed because the server of the store was away, so
// that the step is to be done again.
func isOutage(err error) bool {
	return errors.Is(err, eventlog.ErrUnavailable) || errors.Is(err, eventlog.ErrUnknownOutcome) || errors.Is(err, eventlog.ErrLockLost)
}

const (
	tried        = "try"
	acknowledged = "ack"
)

// do runs a step. again means that the step may be stored already.
func (w *writer) do(ctx context.Context, s *step, again bool) (seq int64, err error) {
	if s.blob != "" {
		if _, err := w.log.PutBlob(ctx, strings.NewReader(s.blob)); err != nil {
			return 0, err
		}
	}
	switch s.kind {
	case redact:
		return w.redact(ctx, s)
	case forking:
		return w.fork(ctx, s)
	}
	expect, err := w.expect(ctx, s, again)
	if err != nil {
		return 0, err
	}
	head, err := w.log.Append(ctx, s.session, expect, s.events...)
	return head.Seq, err
}

func (w *writer) expect(ctx context.Context, s *step, again bool) (eventlog.Expect, error) {
	switch {
	case again:
		return eventlog.Any().After(event.Head{}), nil
	case s.session == shared || s.anyHead:
		return eventlog.Any(), nil
	}
	head, err := w.log.Head(ctx, s.session)
	return eventlog.At(head), err
}

// fork forks the writer's own session at its head. A retry finds the same head, because
// no other writer appends there.
func (w *writer) fork(ctx context.Context, s *step) (int64, error) {
	parent := ownSession(s.writer, s.n)
	point, err := w.newest(ctx, parent)
	if err != nil {
		return 0, err
	}
	forked := event.New(event.Fork{Parent: parent, Seq: point.Seq, EventID: point.ID, Hash: point.Hash()})
	forked.ID = s.events[0].ID
	s.events[0] = forked
	head, err := w.log.Append(ctx, s.session, eventlog.New(), s.events...)
	return head.Seq, err
}

func (w *writer) newest(ctx context.Context, session string) (event.Event, error) {
	for e, err := range w.log.Read(ctx, session, eventlog.Last(1)) {
		return e, err
	}
	return event.Event{}, eventlog.ErrNotFound
}

// redact erases the first event of the target.
func (w *writer) redact(ctx context.Context, s *step) (int64, error) {
	seq, err := w.find(ctx, s.session, s.target.events[0].ID)
	if err != nil {
		return 0, err
	}
	for {
		_, err = erase.Redact(ctx, w.log, s.session, []int64{seq}, erase.RedactOptions{Reason: "torture"})
		var damage *eventlog.CorruptError
		if !errors.As(err, &damage) || damage.Session != recreated {
			return seq, err
		}
		time.Sleep(time.Millisecond) // damage hides which blobs are needed: wait for the repair
	}
}

func (w *writer) find(ctx context.Context, session string, id ulid.ULID) (int64, error) {
	for e, err := range w.log.Read(ctx, session, eventlog.All().Until(id).Backward()) {
		if err != nil || e.ID == id {
			return e.Seq, err
		}
	}
	return 0, eventlog.ErrEventNotFound
}
