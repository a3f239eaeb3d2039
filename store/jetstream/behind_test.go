package jetstream_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// A log that lost a head receives the newer messages, and none before them. It also finds the
// events of a session that was removed and begun again meanwhile.
func TestBehind(t *testing.T) {
	servers := natstest.Start(t, natstest.Options{})
	store, err := jetstream.New("", jetstream.Options{Connect: servers.Connect})
	if err != nil {
		t.Fatal(err)
	}
	log, other := eventlog.Open(store), openLog(t, jetstream.Options{Connect: servers.Connect})
	defer log.Close()
	add := func(log *eventlog.Log, n int) {
		t.Helper()
		for range n {
			if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(log, 40)
	add(other, 3)
	before := store.Received()
	add(log, 1)
	// A refusal, the tip, the tip again, three messages and their end, the acknowledgement.
	if n := store.Received() - before; n != 8 {
		t.Errorf("the append received %d messages, want 8", n)
	}
	if err := erase.Remove(t.Context(), other, "s"); err != nil {
		t.Fatal(err)
	}
	add(other, 60)
	add(log, 1)
	head, err := other.Head(t.Context(), "s")
	if err != nil || head.Seq != 61 {
		t.Errorf("got head %v, %v; want seq 61", head, err)
	}
}
