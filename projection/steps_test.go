package projection_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// The states of each step are the states that a load as of its event returns, and the
// length of the history is the length after a load from a snapshot.
func TestStepsAreLoads(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		name := rapid.SampledFrom(l.Names).Draw(r, "session")
		through := rapid.Int64Range(0, l.Head(name).Seq).Draw(r, "through")
		events := l.Lineage(name)
		if through > 0 {
			events = events[:through]
		}
		for s, err := range projection.Steps(garden.Bg, l.Log, name, garden.Everything, through) {
			l.Allow(err)
			garden.Same(r, "event", events[0].Head(), s.Event.Head())
			events = events[1:]
			loaded, err := projection.LoadSet(garden.Bg, l.Log, name, garden.Everything, projection.Options{At: s.Event.Seq})
			l.Allow(err)
			garden.Same(r, fmt.Sprint("head at ", s.Event.Seq), loaded.Head, s.States.Head)
			garden.Same(r, fmt.Sprint("states at ", s.Event.Seq), l.StatesOf(loaded), l.StatesOf(s.States))
			want, _ := projection.State(loaded, projection.History())
			got, _ := projection.State(s.States, projection.History())
			garden.Same(r, fmt.Sprint("length at ", s.Event.Seq), want.Len(), got.Len())
		}
		garden.Same(r, "events left", 0, len(events))
	})
}

// Steps ends with the error of a missing session or event, of an invalid set, and of an
// event that cannot be folded.
func TestStepsThatFail(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		g.Append("s", event.UserMessage("one"))
		g.Append("s", event.UserMessage("two"))
		refuses := projection.Projection[int]{Name: "test:refuses", Version: 1, Apply: func(n *int, e *event.Event) error {
			if e.Seq == 2 {
				return errors.New("no")
			}
			return nil
		}}
		var fold *projection.FoldError
		for name, test := range map[string]struct {
			session string
			set     projection.Set
			through int64
			steps   int
			is      func(error) bool
		}{
			"a missing session":       {"x", projection.Session(), 0, 0, func(err error) bool { return errors.Is(err, eventlog.ErrNotFound) }},
			"a missing event":         {"s", projection.Session(), 3, 0, func(err error) bool { return errors.Is(err, eventlog.ErrEventNotFound) }},
			"an invalid set":          {"s", projection.Of("empty"), 0, 0, func(err error) bool { return errors.Is(err, projection.ErrInvalidSet) }},
			"an event of no use":      {"s", projection.Of("", refuses), 0, 1, func(err error) bool { return errors.As(err, &fold) && fold.Seq == 2 }},
			"no event of no use yet":  {"s", projection.Of("", refuses), 1, 1, func(err error) bool { return err == nil }},
			"a part of all the steps": {"s", projection.Session(), 0, 2, func(err error) bool { return err == nil }},
		} {
			steps, failed := 0, error(nil)
			for _, err := range projection.Steps(garden.Bg, g.Log, test.session, test.set, test.through) {
				if failed = err; err == nil {
					steps++
				}
			}
			if steps != test.steps || !test.is(failed) {
				t.Errorf("%s: %d steps, %v", name, steps, failed)
			}
		}
	})
}

// Each event is folded once, however often the session was rewound.
func TestStepsFoldOnce(t *testing.T) {
	g := &garden.Garden{T: t, Log: eventlog.Open(garden.Plain(t.TempDir()))}
	defer func() { _ = g.Log.Close() }()
	g.Append("s", event.UserMessage("begin"))
	for i := range 200 {
		g.Append("s", event.UserMessage(fmt.Sprint("try ", i)), event.New(event.HeadMove{To: int64(1 + i%50)}))
	}
	folded := 0
	count := projection.Projection[int]{Name: "test:count", Version: 1, Apply: func(n *int, _ *event.Event) error {
		folded++
		*n++
		return nil
	}}
	for _, err := range projection.Steps(garden.Bg, g.Log, "s", projection.Of("", count), 0) {
		g.Allow(err)
	}
	if events := int(g.Head("s").Seq); folded != events {
		t.Errorf("folded %d times for %d events", folded, events)
	}
}
