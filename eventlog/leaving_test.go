package eventlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/verify"
)

// slowed is a store whose appends wait for the test.
type slowed struct {
	*memory.Store
	entered, pass chan struct{}
}

func (s *slowed) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	s.entered <- struct{}{}
	<-s.pass
	return s.Store.Append(ctx, session, expect, events, durable)
}

// A leader writes an append after the caller of the append has left. Until the write
// ends, no process may remove the blob that the append needs.
func TestBlobOfAppendLeftInFlight(t *testing.T) {
	s := &slowed{memory.New(), make(chan struct{}), make(chan struct{})}
	l := eventlog.Open(s, eventlog.Options{SpillOver: 100})
	defer l.Close()
	appending := func(ctx context.Context, text string) <-chan error {
		e := event.UserMessage(text)
		done := make(chan error, 1)
		go func() {
			_, err := l.Append(ctx, "s", eventlog.Any(), e)
			done <- err
		}()
		return done
	}
	locks := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		_, unlock, err := s.Lock(ctx, true)
		if err == nil {
			unlock()
		}
		return err
	}
	first := appending(t.Context(), "1")
	<-s.entered
	second := appending(t.Context(), "2") // is to lead the third, which queues behind it
	for l.Queued("s") < 1 {
		time.Sleep(time.Millisecond)
	}
	ctx, leave := context.WithCancel(t.Context())
	third := appending(ctx, strings.Repeat("3", 1000))
	for l.Queued("s") < 2 {
		time.Sleep(time.Millisecond)
	}
	s.pass <- struct{}{}
	<-s.entered
	leave()
	if err := <-third; !errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("the caller that left: %v", err)
	}
	if err := locks(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an exclusive lock while the event is being written: %v", err)
	}
	s.pass <- struct{}{}
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	_, unlock, err := s.Lock(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if report, err := verify.Session(t.Context(), l, "s"); err != nil || len(report.Defects) > 0 || report.Events != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}
