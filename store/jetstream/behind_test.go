package jetstream_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// A log that lost a head receives the newer messages, and none before them. It also finds the
// events of a session that was removed and begun again meanwhile.
func TestBehind(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
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
	// A refusal, the tip, three messages and their end, the acknowledgement. A watermark that is
	// due meanwhile brings one more, so the least of some appends counts.
	least := int64(math.MaxInt64)
	for try := 0; try < 20 && least != 7; try++ {
		add(other, 3)
		before := store.Received()
		add(log, 1)
		least = min(least, int64(store.Received()-before))
	}
	if least != 7 {
		t.Errorf("the append received %d messages, want 7", least)
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

// A reader that knows earlier frames of a session reads the same as a new one, whatever
// happened since.
func TestReadNewer(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	writer, reader := openLog(t, options), openLog(t, options)
	random := rand.New(rand.NewPCG(1, 2))
	for range testsize.Pick(10, 30, 150) {
		change(t, writer, random)
		head, err := writer.Head(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		span := eventlog.Span{From: 1 + random.Int64N(head.Seq+1), Backward: random.IntN(2) == 0, Limit: random.IntN(4)}
		if random.IntN(2) == 0 {
			span.From = head.Seq - random.Int64N(3)
		}
		got, err := lines(t, reader, span)
		want, wantErr := lines(t, openLog(t, options), span)
		if err != nil || wantErr != nil || !slices.Equal(got, want) {
			t.Fatalf("%+v: got %q, %v; want %q, %v", span, got, err, want, wantErr)
		}
	}
}

// change appends, redacts an event, or removes the session and begins it again.
func change(t *testing.T, log *eventlog.Log, random *rand.Rand) {
	t.Helper()
	var err error
	head, reading := log.Head(t.Context(), "s")
	switch n := random.IntN(20); {
	case reading != nil || n > 3:
		events := make([]event.Event, 1+random.IntN(3))
		for i := range events {
			events[i] = event.UserMessage("hello")
		}
		_, err = log.Append(t.Context(), "s", eventlog.Any(), events...)
	case n > 0:
		_, err = erase.Redact(t.Context(), log, "s", []int64{1 + random.Int64N(head.Seq)}, erase.RedactOptions{Reason: "test"})
	default:
		if err = erase.Remove(t.Context(), log, "s"); err == nil {
			_, err = log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("again"))
		}
	}
	if err != nil && !errors.Is(err, event.ErrInvalid) {
		t.Fatal(err)
	}
}

// lines are the lines that a log reads of the session.
func lines(t *testing.T, log *eventlog.Log, span eventlog.Span) (lines []string, err error) {
	for e, err := range log.Store().Read(t.Context(), "s", span) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(e.Line()))
	}
	return lines, nil
}
