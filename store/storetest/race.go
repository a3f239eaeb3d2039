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
)

var raceCases = []testCase{
	{
		Name:        "one winner at a head",
		Explanation: "Of 16 appends racing at one head exactly one wins; all others get a conflict.",
		Run:         func(t *env) { testRaceAt(t, t.Main(), t.Main()) },
	},
	{
		Name:        "one winner at a head across handles",
		Explanation: "Of 16 appends racing at one head through two handles exactly one wins; all others get a conflict.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceAt(t, t.Main(), t.Second()) },
	},
	{
		Name:        "one creates",
		Explanation: "Of 16 appends that race to create a session exactly one wins.",
		Run:         func(t *env) { testRaceNew(t, t.Main(), t.Main()) },
	},
	{
		Name:        "one creates across handles",
		Explanation: "Of 16 appends that race to create a session through two handles exactly one wins.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceNew(t, t.Main(), t.Second()) },
	},
	{
		Name:        "nothing lost with Any",
		Explanation: "Appends that race with Any are all stored, once each, and each writer's in its own order.",
		Run:         func(t *env) { testRaceAny(t, t.Main(), t.Main()) },
	},
	{
		Name:        "nothing lost with Any across handles",
		Explanation: "Appends that race with Any through two handles are all stored, once each, and each writer's in its own order.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testRaceAny(t, t.Main(), t.Second()) },
	},
	{
		Name:        "the same events",
		Explanation: "16 retries of the same events that race all succeed with one head, and store them once.",
		Run:         testRaceSame,
	},
	{
		Name:        "sessions in parallel",
		Explanation: "Appends to many sessions at once do not mix.",
		Run:         testRaceSessions,
	},
}

func testRaceAt(t *env, logs ...*eventlog.Log) {
	head := event.Head{}
	for range 25 {
		var won []event.Head
		heads := make([]event.Head, racers)
		errs := suite.Together(racers, func(i int) (err error) {
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
			t.Fatalf("%d of %d appends at %v won", len(won), racers, head)
		}
		head = won[0]
		t.Same("head", head, t.Head(logs[1], "a"))
	}
	t.Sound(logs[0], "a")
}

func testRaceNew(t *env, logs ...*eventlog.Log) {
	for round := range 25 {
		session := fmt.Sprintf("s%d", round)
		errs := suite.Together(racers, func(i int) error {
			_, err := logs[i%len(logs)].Append(t.Ctx, session, eventlog.New(), suite.Note(i))
			return err
		})
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, eventlog.ErrConflict) })
		if len(errs) != 1 || errs[0] != nil {
			t.Fatalf("%d of %d creations of %q did not get a conflict: %v", len(errs), racers, session, errors.Join(errs...))
		}
		t.Same("events", 1, len(t.Lines(logs[1], session)))
	}
}

func testRaceAny(t *env, logs ...*eventlog.Log) {
	const each = 20
	errs := suite.Together(racers, func(i int) error {
		for n := range each {
			if _, err := logs[i%len(logs)].Append(t.Ctx, "a", eventlog.Any(), mark(i, n, 0), mark(i, n, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	t.marks(logs[1], racers, each)
	t.Sound(t.Reopen(), "a")
	t.marks(t.Main(), racers, each)
}

// mark is an event that says who wrote it, as which of his appends, and its
// place in that.
func mark(writer, n, place int) event.Event {
	return suite.NewEvent("test:mark", fmt.Sprintf(`[%d,%d,%d]`, writer, n, place))
}

// marks makes sure that every writer's marks stand once, in order, in pairs.
func (t *env) marks(l *eventlog.Log, writers, each int) {
	t.Helper()
	next := make([]int, writers)
	events := t.Read(l, "a", eventlog.All())
	for i := 0; i+1 < len(events); i += 2 {
		var writer, n int
		if _, err := fmt.Sscanf(string(events[i].Data), "[%d,%d,0]", &writer, &n); err != nil {
			t.Fatalf("event %d is %s: %v", i+1, events[i].Data, err)
		}
		t.Same("the other half", fmt.Sprintf("[%d,%d,1]", writer, n), string(events[i+1].Data))
		if n != next[writer] {
			t.Fatalf("append %d of writer %d stands where %d was due", n, writer, next[writer])
		}
		next[writer]++
	}
	t.Same("events", 2*writers*each, len(events))
}

func testRaceSame(t *env) {
	l := t.Main()
	head := t.Fill(l, "a", 1)
	for range 20 {
		events := suite.Notes(2)
		heads := make([]event.Head, racers)
		errs := suite.Together(racers, func(i int) (err error) {
			x := eventlog.At(head)
			if i%2 == 0 {
				x = eventlog.Any()
			}
			heads[i], err = l.Append(t.Ctx, "a", x, events...)
			return err
		})
		t.Must(errors.Join(errs...))
		head = heads[0]
		t.Same("heads", 1, len(slices.Compact(heads)))
	}
	t.Same("events", 41, len(t.Lines(l, "a")))
}

func testRaceSessions(t *env) {
	l := t.Main()
	sessions := strings.Split("a b c d e f g h", " ")
	errs := suite.Together(len(sessions), func(i int) error {
		for n := range 30 {
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
			t.Same("session of the data", `"`+session+`"`, string(e.Data))
		}
		t.Sound(t.Main(), session)
	}
}
