package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var raceCases = []testCase{
	{
		name:        "one winner at a head",
		explanation: "Of 16 appends racing at one head exactly one wins; all others get a conflict.",
		run:         func(t *env) { testRaceAt(t, t.log(), t.log()) },
	},
	{
		name:        "one winner at a head across handles",
		explanation: "Of 16 appends racing at one head through two handles exactly one wins; all others get a conflict.",
		needs:       []Need{Handles},
		run:         func(t *env) { testRaceAt(t, t.log(), t.second()) },
	},
	{
		name:        "one creates",
		explanation: "Of 16 appends that race to create a session exactly one wins.",
		run:         func(t *env) { testRaceNew(t, t.log(), t.log()) },
	},
	{
		name:        "one creates across handles",
		explanation: "Of 16 appends that race to create a session through two handles exactly one wins.",
		needs:       []Need{Handles},
		run:         func(t *env) { testRaceNew(t, t.log(), t.second()) },
	},
	{
		name:        "nothing lost with Any",
		explanation: "Appends that race with Any are all stored, once each, and each writer's in its own order.",
		run:         func(t *env) { testRaceAny(t, t.log(), t.log()) },
	},
	{
		name:        "nothing lost with Any across handles",
		explanation: "Appends that race with Any through two handles are all stored, once each, and each writer's in its own order.",
		needs:       []Need{Handles},
		run:         func(t *env) { testRaceAny(t, t.log(), t.second()) },
	},
	{
		name:        "the same events",
		explanation: "16 retries of the same events that race all succeed with one head, and store them once.",
		run:         testRaceSame,
	},
	{
		name:        "sessions in parallel",
		explanation: "Appends to many sessions at once do not mix.",
		run:         testRaceSessions,
	},
}

func testRaceAt(t *env, logs ...*eventlog.Log) {
	head := event.Head{}
	for range 25 {
		var won []event.Head
		heads := make([]event.Head, racers)
		errs := together(racers, func(i int) (err error) {
			heads[i], err = logs[i%len(logs)].Append(t.ctx, "a", eventlog.At(head), notes(1+i%3)...)
			return err
		})
		for i, err := range errs {
			if err == nil {
				won = append(won, heads[i])
			} else {
				t.wantErr(eventlog.ErrConflict, err)
			}
		}
		if len(won) != 1 {
			t.Fatalf("%d of %d appends at %v won", len(won), racers, head)
		}
		head = won[0]
		t.same("head", head, t.head(logs[1], "a"))
	}
	t.sound(logs[0], "a")
}

func testRaceNew(t *env, logs ...*eventlog.Log) {
	for round := range 25 {
		session := fmt.Sprintf("s%d", round)
		errs := together(racers, func(i int) error {
			_, err := logs[i%len(logs)].Append(t.ctx, session, eventlog.New(), note(i))
			return err
		})
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, eventlog.ErrConflict) })
		if len(errs) != 1 || errs[0] != nil {
			t.Fatalf("%d of %d creations of %q did not get a conflict: %v", len(errs), racers, session, errors.Join(errs...))
		}
		t.same("events", 1, len(t.lines(logs[1], session)))
	}
}

func testRaceAny(t *env, logs ...*eventlog.Log) {
	const each = 20
	errs := together(racers, func(i int) error {
		for n := range each {
			if _, err := logs[i%len(logs)].Append(t.ctx, "a", eventlog.Any(), mark(i, n, 0), mark(i, n, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	t.marks(logs[1], racers, each)
	t.sound(t.reopen(), "a")
	t.marks(t.log(), racers, each)
}

// mark is an event that says who wrote it, as which of his appends, and its
// place in that.
func mark(writer, n, place int) event.Event {
	return newEvent("test:mark", fmt.Sprintf(`[%d,%d,%d]`, writer, n, place))
}

// marks makes sure that every writer's marks stand once, in order, in pairs.
func (t *env) marks(l *eventlog.Log, writers, each int) {
	t.Helper()
	next := make([]int, writers)
	events := t.read(l, "a", eventlog.All())
	for i := 0; i+1 < len(events); i += 2 {
		var writer, n int
		if _, err := fmt.Sscanf(string(events[i].Data), "[%d,%d,0]", &writer, &n); err != nil {
			t.Fatalf("event %d is %s: %v", i+1, events[i].Data, err)
		}
		t.same("the other half", fmt.Sprintf("[%d,%d,1]", writer, n), string(events[i+1].Data))
		if n != next[writer] {
			t.Fatalf("append %d of writer %d stands where %d was due", n, writer, next[writer])
		}
		next[writer]++
	}
	t.same("events", 2*writers*each, len(events))
}

func testRaceSame(t *env) {
	l := t.log()
	head := t.fill(l, "a", 1)
	for range 20 {
		events := notes(2)
		heads := make([]event.Head, racers)
		errs := together(racers, func(i int) (err error) {
			x := eventlog.At(head)
			if i%2 == 0 {
				x = eventlog.Any()
			}
			heads[i], err = l.Append(t.ctx, "a", x, events...)
			return err
		})
		t.must(errors.Join(errs...))
		head = heads[0]
		t.same("heads", 1, len(slices.Compact(heads)))
	}
	t.same("events", 41, len(t.lines(l, "a")))
}

func testRaceSessions(t *env) {
	l := t.log()
	sessions := strings.Split("a b c d e f g h", " ")
	errs := together(len(sessions), func(i int) error {
		for n := range 30 {
			e := note(n)
			e.Data = jsontext.Value(`"` + sessions[i] + `"`)
			if _, err := l.Append(t.ctx, sessions[i], eventlog.Any(), e); err != nil {
				return err
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	for _, session := range sessions {
		for _, e := range t.read(t.log(), session, eventlog.All()) {
			t.same("session of the data", `"`+session+`"`, string(e.Data))
		}
		t.sound(t.log(), session)
	}
}
