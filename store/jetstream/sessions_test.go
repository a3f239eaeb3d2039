package jetstream_test

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// A listing reports no errors of sessions that are removed, begun again and redacted
// meanwhile. The first and the last event of a row are of one session.
func TestListOfChangingSessions(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	writer, reader := openLog(t, jetstream.Options{Connect: servers.Connect}), openLog(t, jetstream.Options{Connect: servers.Connect})
	written := make(chan error, 1)
	go func() {
		for i := range testsize.Pick(12, 15, 80) {
			if err := beginAgain(t, writer, fmt.Sprint("s", i%10), fmt.Sprint("text ", i), i >= 10); err != nil {
				written <- err
				return
			}
		}
		close(written)
	}()
	for {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		for info, err := range reader.Sessions(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := event.Decode[event.Message](&info.First)
			last, _, _ := event.Decode[event.Message](&info.Last)
			if info.Err != nil || !info.First.Redacted() && info.Last.Type == event.MessageAdded && first.Text() != last.Text() {
				t.Fatalf("session %q: from %q to %q, %v", info.ID, first.Text(), last.Text(), info.Err)
			}
		}
	}
}

// beginAgain removes a session if it exists, appends a text twice, and redacts the first
// event.
func beginAgain(t *testing.T, log *eventlog.Log, session, text string, exists bool) error {
	if exists {
		if err := erase.Remove(t.Context(), log, session); err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage(text)); err != nil {
			return err
		}
	}
	_, err := erase.Redact(t.Context(), log, session, []int64{1}, erase.RedactOptions{Reason: "test"})
	return err
}
