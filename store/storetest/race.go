package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var raceCases = []testCase{
	{
		Name:        "one append at a head",
		Explanation: "Of 16 concurrent appends at one head exactly one succeeds. All others get a conflict.",
		Run:         func(t *env) { testRaceAt(t, t.Main(), t.Main()) },
	},
	{
		Name:        "one append at a head across handles",
		Explanation: "Of 16 concurrent appends at one head through two handles exactly one succeeds. All others get a conflict.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceAt(t, t.Main(), t.Second()) },
	},
	{
		Name:        "one append creates",
		Explanation: "Of 16 concurrent appends that create a session exactly one succeeds.",
		Run:         func(t *env) { testRaceNew(t, t.Main(), t.Main()) },
	},
	{
		Name:        "one append creates across handles",
		Explanation: "Of 16 concurrent appends that create a session through two handles exactly one succeeds.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceNew(t, t.Main(), t.Second()) },
	},
	{
		Name:        "nothing lost with Any",
		Explanation: "Concurrent appends with Any are all stored once, and the appends of each writer are in order.",
		Run:         func(t *env) { testRaceAny(t, t.Main(), t.Main()) },
	},
	{
		Name:        "nothing lost with Any across handles",
		Explanation: "Concurrent appends with Any through two handles are all stored once, and the appends of each writer are in order.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceAny(t, t.Main(), t.Second()) },
	},
	{
		Name:        "retries of the same events",
		Explanation: "16 concurrent retries of the same events all succeed with one head and store the events once.",
		Run:         testRaceSame,
	},
	{
		Name:        "sessions in parallel",
		Explanation: "Concurrent appends to many sessions do not mix.",
		Run:         testRaceSessions,
	},
}

func testRaceAt(t *env, logs ...*eventlog.Log) {
	head := event.Head{}
	for range testsize.Pick(3, 5, 25) {
		var won []event.Head
		heads := make([]event.Head, racers)
		errs := suite.Concurrently(racers, func(i int) (err error) {
			heads[i], err = logs[i%len(logs)].Append(t.Ctx, "a", eventlog.At(head), suite.Notes(1+i%3)...)
			return err
		})
		for i, err := range errs {
			if err == nil {
				won = append(won, heads[i])
			} else {
				t.WantErr(eventlog.ErrConflict, err)
			}
		}
		if len(won) != 1 {
			t.Fatalf("%d of %d appends at %v succeeded, want 1", len(won), racers, head)
		}
		head = won[0]
		t.WantEqual("head", head, t.Head(logs[1], "a"))
	}
	t.WantVerified(logs[0], "a")
}

func testRaceNew(t *env, logs ...*eventlog.Log) {
	for round := range testsize.Fewer(25) {
		session := fmt.Sprintf("s%d", round)
		errs := suite.Concurrently(racers, func(i int) error {
			_, err := logs[i%len(logs)].Append(t.Ctx, session, eventlog.New(), suite.Note(i))
			return err
		})
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, eventlog.ErrConflict) })
		if len(errs) != 1 || errs[0] != nil {
			t.Fatalf("%d of %d creations of %q got no conflict, want 1 success: %v", len(errs), racers, session, errors.Join(errs...))
		}
		t.WantEqual("events", 1, len(t.Lines(logs[1], session)))
	}
}

func testRaceAny(t *env, logs ...*eventlog.Log) {
	each := testsize.Fewer(20)
	errs := suite.Concurrently(racers, func(i int) error {
		for n := range each {
			if _, err := logs[i%len(logs)].Append(t.Ctx, "a", eventlog.Any(), mark(i, n, 0), mark(i, n, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	t.wantMarks(logs[1], racers, each)
	t.WantVerified(t.Reopen(), "a")
	t.wantMarks(t.Main(), racers, each)
}

// mark returns an event with the number of its writer, the number of the append and
// its place in the append.
func mark(writer, n, place int) event.Event {
	return suite.NewEvent("test:mark", fmt.Sprintf(`[%d,%d,%d]`, writer, n, place))
}

// wantMarks checks that the marks of every writer are stored once, in order and in
// pairs.
func (t *env) wantMarks(l *eventlog.Log, writers, each int) {
	t.Helper()
	next := make([]int, writers)
	events := t.Read(l, "a", eventlog.All())
	for i := 0; i+1 < len(events); i += 2 {
		var writer, n int
		if _, err := fmt.Sscanf(string(events[i].Data), "[%d,%d,0]", &writer, &n); err != nil {
			t.Fatalf("event %d is %s: %v", i+1, events[i].Data, err)
		}
		t.WantEqual("the other half", fmt.Sprintf("[%d,%d,1]", writer, n), string(events[i+1].Data))
		if n != next[writer] {
			t.Fatalf("got append %d of writer %d, want append %d", n, writer, next[writer])
		}
		next[writer]++
	}
	t.WantEqual("events", 2*writers*each, len(events))
}

func testRaceSame(t *env) {
	l := t.Main()
	head := t.Fill(l, "a", 1)
	count := testsize.Fewer(20)
	for range count {
		events := suite.Notes(2)
		heads := make([]event.Head, racers)
		errs := suite.Concurrently(racers, func(i int) (err error) {
			x := eventlog.At(head)
			if i%2 == 0 {
				x = eventlog.Any()
			}
			heads[i], err = l.Append(t.Ctx, "a", x, events...)
			return err
		})
		t.Must(errors.Join(errs...))
		head = heads[0]
		t.WantEqual("heads", 1, len(slices.Compact(heads)))
	}
	t.WantEqual("events", 1+2*count, len(t.Lines(l, "a")))
}

func testRaceSessions(t *env) {
	l := t.Main()
	sessions := strings.Split("a b c d e f g h", " ")
	errs := suite.Concurrently(len(sessions), func(i int) error {
		for n := range testsize.Fewer(30) {
			e := suite.Note(n)
			e.Data = jsontext.Value(`"` + sessions[i] + `"`)
			if _, err := l.Append(t.Ctx, sessions[i], eventlog.Any(), e); err != nil {
				return err
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	for _, session := range sessions {
		for _, e := range t.Read(t.Main(), session, eventlog.All()) {
			t.WantEqual("session of the data", `"`+session+`"`, string(e.Data))
		}
		t.WantVerified(t.Main(), session)
	}
}
