package stats_test

import (
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
)

// timed appends payloads, each some seconds after midnight.
func timed(t *testing.T, log *eventlog.Log, seconds []int, payloads ...event.Payload) {
	t.Helper()
	var events []event.Event
	for i, p := range payloads {
		e := event.New(p)
		e.Timestamp = time.Date(2026, 3, 1, 0, 0, seconds[i], 0, time.UTC)
		events = append(events, e)
	}
	if _, err := log.Append(t.Context(), "s", eventlog.New(), events...); err != nil {
		t.Fatal(err)
	}
}

// The time that a turn waits for a person is apart from the time that it works.
func TestWaitingIsNoWork(t *testing.T) {
	log := eventlog.Open(memory.New())
	said := func(role event.Role, text string) event.Message {
		return event.Message{Role: role, Parts: []event.Part{event.Text(text)}}
	}
	timed(t, log, []int{0, 1, 4, 10, 1010, 1015, 1020, 1025, 1030, 90_000, 90_007},
		event.Session{}, said(event.User, "Pay."), said(event.Assistant, "I ask."),
		event.ApprovalRequest{InterruptID: "i", CursorID: "c", Name: "pay"},
		event.ApprovalResolution{InterruptID: "i", Decision: event.Approved},
		event.Wait{WaitID: "w", Reason: "mail"}, said(event.Assistant, "Meanwhile."), event.Wait{Resolved: true, WaitID: "w", Outcome: event.WaitWasResolved},
		said(event.Assistant, "Paid."), said(event.User, "Thanks."), said(event.Assistant, "Welcome."))
	got, err := stats.Load(t.Context(), log, "s")
	if err != nil || got.Total.WorkMS != (9+5+5+7)*1000 || got.Total.WaitMS != (1000+5+5)*1000 || got.Total.Turns != 2 {
		t.Errorf("stats: %+v, %v", got.Total, err)
	}
}

// A recorded time counts instead of the times of the events, unless the turn waited.
func TestRecordedTimeOfATurn(t *testing.T) {
	log := eventlog.Open(memory.New())
	start := event.TurnStart{}
	timed(t, log, []int{0, 1, 2, 30, 100, 200, 201, 300, 5000},
		event.Session{}, start, event.Message{Role: event.User, Parts: []event.Part{event.Text("Go.")}},
		event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Done.")}},
		event.TurnCompletion{Status: event.TurnStatusCompleted, DurationMS: 20_500},
		start, event.Message{Role: event.User, Parts: []event.Part{event.Text("Again.")}},
		event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Hm.")}},
		event.TurnCompletion{Status: event.TurnStatusInterrupted})
	got, err := stats.Load(t.Context(), log, "s")
	if err != nil || got.Total.WorkMS != 20_500+100_000 {
		t.Errorf("stats: %+v, %v", got.Total, err)
	}
}

// A compaction that a person asks for later, and tokens that are noted later, do not extend a turn.
// A compaction within a turn takes a part of its time.
func TestWhatFollowsATurnIsNoWork(t *testing.T) {
	log := eventlog.Open(memory.New())
	said := func(role event.Role, text string) event.Message {
		return event.Message{Role: role, Parts: []event.Part{event.Text(text)}}
	}
	compaction := event.Compaction{Summary: "They greeted.", Replace: true}
	tokens := event.StepCompletion{ResponseID: "summary", Usage: event.Usage{InputTokens: 5}}
	timed(t, log, []int{0, 1, 5, 80_000, 80_001, 90_000, 90_003, 90_004, 90_010, 95_000},
		event.Session{}, said(event.User, "Hello."), said(event.Assistant, "Hello."), compaction, tokens,
		said(event.User, "Go on."), compaction, tokens, said(event.Assistant, "Done."), tokens)
	got, err := stats.Load(t.Context(), log, "s")
	if err != nil || got.Total.WorkMS != (4+10)*1000 {
		t.Errorf("stats: %+v, %v", got.Total, err)
	}
}

// Parts of milliseconds between the events of a turn add up.
func TestManyShortTimes(t *testing.T) {
	log := eventlog.Open(memory.New())
	events := []event.Event{event.New(event.Session{}), event.New(event.Message{Role: event.User, Parts: []event.Part{event.Text("Go.")}})}
	for range 10 {
		events = append(events, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Done.")}}))
	}
	for i := range events {
		events[i].Timestamp = time.Date(2026, 3, 1, 0, 0, 0, i*900_000, time.UTC)
	}
	if _, err := log.Append(t.Context(), "s", eventlog.New(), events...); err != nil {
		t.Fatal(err)
	}
	got, err := stats.Load(t.Context(), log, "s")
	if err != nil || got.Total.WorkMS != 9 {
		t.Errorf("stats: %+v, %v", got.Total, err)
	}
}
