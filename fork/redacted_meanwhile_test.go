package fork_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/erase"
)

// crossed is a store that calls a function while the last event of a session is
// read.
type crossed struct {
	eventlog.Store
	at     string
	during func()
	shared atomic.Int64  // holders of the store lock
	locked atomic.Int64  // how often it was shared
	asked  chan struct{} // somebody wants the store lock alone
}

func (c *crossed) Unwrap() eventlog.Store { return c.Store }

func (c *crossed) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.Store.Read(ctx, session, r) {
			if session == c.at && c.during != nil && err == nil && e.Seq == r.To {
				during := c.during
				c.during = nil
				during()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (c *crossed) Lock(ctx context.Context, exclusive bool) (context.Context, func(), error) {
	if exclusive {
		close(c.asked)
	}
	locker, _ := eventlog.As[eventlog.Locker](c.Store)
	held, unlock, err := locker.Lock(ctx, exclusive)
	if err != nil || exclusive {
		return held, unlock, err
	}
	c.shared.Add(1)
	c.locked.Add(1)
	return held, func() {
		c.shared.Add(-1)
		unlock()
	}, nil
}

// A redaction that begins while its event is copied finds the copy.
func TestARedactionMissesNoCopyUnderWay(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			store := &crossed{Store: open(t.TempDir()), asked: make(chan struct{})}
			b := &bench{TB: t, ctx: t.Context(), log: eventlog.Open(store)}
			defer func() { b.must(b.log.Close()) }()
			b.each("s", user("one"), user("the secret"), user("three"))
			done := make(chan erase.Redaction, 1)
			redacted := func() {
				r, err := erase.Redact(b.ctx, b.log, "s", []int64{2}, erase.RedactOptions{Reason: ""})
				if err != nil {
					t.Error(err)
				}
				done <- r
			}
			var r erase.Redaction
			store.at, store.during = "s", func() {
				go redacted()
				if <-store.asked; store.shared.Load() == 0 {
					r = <-done // nobody keeps it from running now
					done <- r
				}
			}
			_, err := fork.Copy(b.ctx, b.log, "s", fork.CopyOptions{ID: "c"})
			b.must(err)
			r = <-done
			if len(r.Untouched) != 1 || r.Untouched[0].Session != "c" || r.Untouched[0].Seq != 2 {
				t.Errorf("the copy holds %s; told of: %+v", all(b, b.log, "c")[1].Data, r.Untouched)
			}
		})
	}
}

// A snapshot may hold redacted content: it is appended before or after the
// redaction, by any method. A mark holds no content.
func TestABodyIsAppendedUnderTheStoreLock(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			store := &crossed{Store: open(t.TempDir()), asked: make(chan struct{})}
			b := &bench{TB: t, ctx: t.Context(), log: eventlog.Open(store)}
			defer func() { b.must(b.log.Close()) }()
			b.each("s", user("one"))
			for state, want := range map[string]int64{"": 0, `{"x":1}`: 1} {
				body, before := jsontext.Value(nil), store.locked.Load()
				if state != "" {
					body = jsontext.Value(state)
				}
				b.add("s", event.New(event.Snapshot{Projection: "p", Seq: 1, State: body}))
				if got := store.locked.Load() - before; got != want {
					t.Errorf("the lock was taken %d times for the state %q", got, state)
				}
			}
		})
	}
}

// A redaction inside Hold fails: it would wait for itself.
func TestWhatErasesIsRefusedWhileHeld(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("s", user("one"), user("two"))
		t.must(t.log.Hold(t.ctx, func(ctx context.Context) error {
			_, err := erase.Redact(ctx, t.log, "s", []int64{1}, erase.RedactOptions{Reason: ""})
			for name, err := range map[string]error{"redact": err, "remove": erase.Remove(ctx, t.log, "s")} {
				if err == nil || !strings.Contains(err.Error(), "inside Hold") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := t.log.Hold(ctx, func(context.Context) error { return nil }); err != nil {
				t.Errorf("held twice: %v", err)
			}
			_, err = fork.Copy(ctx, t.log, "s")
			return err
		}))
		_, err := erase.Redact(t.ctx, t.log, "s", []int64{1}, erase.RedactOptions{Reason: ""})
		t.must(err)
	})
}
