//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// recreated is a session that is removed and created again repeatedly.
const recreated = "recreated"

// recreate creates generation n of the session, with appends of 1, 2 and 3 events. The
// last together appends are one AppendEach.
func recreate(ctx context.Context, log *eventlog.Log, n, single, together int) error {
	appends := make([][]event.Event, single+together)
	for i, at := 0, 0; i < len(appends); i++ {
		for range 1 + i%3 {
			at++
			e := event.Event{ID: event.NewID(), Type: "test:note", Data: fmt.Appendf(nil, `[%d,%d]`, n, at)}
			appends[i] = append(appends[i], e)
		}
	}
	for i, events := range appends[:single] {
		expect := eventlog.Any()
		if i == 0 {
			expect = eventlog.New()
		}
		if _, err := log.Append(ctx, recreated, expect, events...); err != nil {
			return fmt.Errorf("generation %d of session %q: %w", n, recreated, err)
		}
	}
	_, err := log.AppendEach(ctx, recreated, eventlog.Any(), appends[single:]...)
	return err
}

// generation checks the events of one generation of the session.
type generation struct {
	n, at int
	last  event.Event
}

// next checks an event. A damaged and repaired event is a Lost event.
func (l *generation) next(e *event.Event) error {
	if e.Type == event.Lost && e.Seq == int64(l.at)+1 {
		l.at, l.last = l.at+1, *e
		return nil
	}
	var n, at int
	if _, err := fmt.Sscanf(string(e.Data), "[%d,%d]", &n, &at); err != nil {
		return fmt.Errorf("seq %d has data %s: %w", e.Seq, e.Data, err)
	}
	if l.n == 0 {
		l.n = n
	}
	if n != l.n || at != l.at+1 || e.Seq != int64(at) {
		return fmt.Errorf("seq %d is event %d of generation %d, after event %d of generation %d", e.Seq, at, n, l.at, l.n)
	}
	l.at, l.last = at, *e
	return nil
}

func (l *generation) end() error {
	if more := l.last.More(); l.at > 0 && more > 0 {
		return fmt.Errorf("generation %d ends with event %d, and %d events of its append are missing", l.n, l.at, more)
	}
	return nil
}

// isLoss reports whether a reader may get err because the session was removed or
// damaged.
func isLoss(err error) bool {
	return errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrCorrupt)
}

// watchRecreated watches all generations until ctx ends. Each watch must end with an
// expected error.
func watchRecreated(ctx context.Context, log *eventlog.Log) error {
	for ctx.Err() == nil {
		life := generation{}
		for e, err := range log.Watch(ctx, recreated, 1) {
			if err == nil {
				err = life.next(&e)
			}
			if err == nil || ctx.Err() != nil {
				continue
			}
			if !isLoss(err) {
				return fmt.Errorf("watch session %q: %w", recreated, err)
			}
			break
		}
	}
	return nil
}
