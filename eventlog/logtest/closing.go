package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
)

// closing is the state of a test that closes a log while its operations run.
type closing struct {
	*env
	log    *eventlog.Log
	store  eventlog.Store
	digest event.Digest
	head   event.Head // of session "a", which never changes
}

// testCloseRunning closes logs while all operations run, after different numbers of
// calls.
func testCloseRunning(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.Notes(50)...)
	for round := range testsize.Pick(3, 3, 4) {
		t.Close()
		c := &closing{env: t, log: t.Main(), store: t.Store(), head: t.Head(t.Main(), "a")}
		c.digest = event.DigestOf([]byte("body"))
		if _, ok := eventlog.As[eventlog.Blobs](c.store); ok {
			_, err := c.log.PutBlob(t.Ctx, suite.NewReader("body"))
			t.Must(err)
		}
		c.run(append(c.logOperations(), c.storeOperations()...), int64(1)<<(3*round))
		t.OpenLog = nil
		t.WantNoOpenFiles()
	}
	t.WantVerified(t.Reopen(), "a")
}

// testCloseWaiting closes a log while its calls wait for a lock that another handle
// holds.
func testCloseWaiting(t *env) {
	t.Fill(t.Main(), "a", 1)
	_, unlock, err := suite.Ability[eventlog.Locker](t, t.Open()).Lock(t.Ctx, true)
	t.Must(err)
	defer unlock()
	l := t.Main()
	waits := []operation{
		{"Locker.Lock", func(ctx context.Context) error {
			_, unlock, err := suite.Ability[eventlog.Locker](t, l.Store()).Lock(ctx, false)
			if err == nil {
				unlock()
			}
			return err
		}},
		{"Log.Hold", func(ctx context.Context) error { return l.Hold(ctx, func(context.Context) error { return nil }) }},
		{"erase.Remove", func(ctx context.Context) error { return erase.Remove(ctx, l, "a") }},
	}
	errs := suite.Concurrently(len(waits)+1, func(i int) error {
		if i == len(waits) {
			return l.Close()
		}
		return waits[i].call(t.Ctx)
	})
	for i, op := range waits {
		if !errors.Is(errs[i], eventlog.ErrClosed) {
			t.Errorf("%s: got error %v, want ErrClosed", op.name, errs[i])
		}
	}
	t.Must(errs[len(waits)])
	t.OpenLog = nil
}

// run calls every operation until the log is closed, and once more after that.
func (c *closing) run(all []operation, calls int64) {
	var done atomic.Int64
	ready := make(chan struct{})
	begin := sync.OnceFunc(func() { close(ready) })
	errs := suite.Concurrently(len(all)+1, func(i int) error {
		if i == len(all) {
			<-ready
			return c.log.Close()
		}
		for {
			err := all[i].call(c.Ctx)
			if done.Add(1) == calls+int64(len(all))/2 {
				begin()
			}
			if errors.Is(err, eventlog.ErrClosed) {
				return nil
			}
			if !isOrdinary(err) {
				begin()
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			c.Errorf("during Close: %v", err)
		}
	}
	for _, op := range all {
		if err := op.call(c.Ctx); !errors.Is(err, eventlog.ErrClosed) {
			c.Errorf("%s after Close: got error %v, want ErrClosed", op.name, err)
		}
	}
}

// isOrdinary reports whether an operation may return err because of the other
// operations.
func isOrdinary(err error) bool {
	if err == nil {
		return true
	}
	for _, target := range []error{eventlog.ErrNotFound, eventlog.ErrConflict, eventlog.ErrUnknownOutcome, eventlog.ErrBlobNotFound} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
