package torture

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// mortal is a session that is removed and made anew, again and again.
const mortal = "mortal"

// live makes the session in its n-th life, with appends of 1, 2, and 3 events,
// the last of them at once.
func live(ctx context.Context, log *eventlog.Log, n, single, together int) error {
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
		if _, err := log.Append(ctx, mortal, expect, events...); err != nil {
			return fmt.Errorf("life %d of session %q: %w", n, mortal, err)
		}
	}
	_, err := log.AppendEach(ctx, mortal, eventlog.Any(), appends[single:]...)
	return err
}

// life follows the session through one of its lives.
type life struct {
	n, at int
	last  event.Event
}

// next takes an event. One that was damaged and repaired is lost.
func (l *life) next(e *event.Event) error {
	if e.Type == event.Lost && e.Seq == int64(l.at)+1 {
		l.at, l.last = l.at+1, *e
		return nil
	}
	var n, at int
	if _, err := fmt.Sscanf(string(e.Data), "[%d,%d]", &n, &at); err != nil {
		return fmt.Errorf("seq %d holds %s: %w", e.Seq, e.Data, err)
	}
	if l.n == 0 {
		l.n = n
	}
	if n != l.n || at != l.at+1 || e.Seq != int64(at) {
		return fmt.Errorf("seq %d is event %d of life %d, after event %d of life %d", e.Seq, at, n, l.at, l.n)
	}
	l.at, l.last = at, *e
	return nil
}

func (l *life) end() error {
	if more := l.last.More(); l.at > 0 && more > 0 {
		return fmt.Errorf("life %d ends with event %d, %d of its append are missing", l.n, l.at, more)
	}
	return nil
}

// vanished reports whether err is one that a reader of a session gets that is
// removed, made anew, damaged and repaired.
func vanished(err error) bool {
	return errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrCorrupt)
}

// watchMortal watches the session's lives until ctx ends. Each ends with one
// of the errors that it may end with.
func watchMortal(ctx context.Context, log *eventlog.Log) error {
	for ctx.Err() == nil {
		life := life{}
		for e, err := range log.Watch(ctx, mortal, 1) {
			if err == nil {
				err = life.next(&e)
			}
			if err == nil || ctx.Err() != nil {
				continue
			}
			if !vanished(err) {
				return fmt.Errorf("watch session %q: %w", mortal, err)
			}
			break
		}
	}
	return nil
}
