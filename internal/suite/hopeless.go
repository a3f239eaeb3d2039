package suite

import (
	"context"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
)

// hopelessStores are stores that no promise can use. A promise about one fails, or does
// not notice.
var hopelessStores = []BrokenStore{
	{"fails every append", func(m *memory.Store) eventlog.Store { return &failsAppends{m} }},
	{"fails appends later", func(m *memory.Store) eventlog.Store { return &failsLater{Store: m} }},
	{"always conflicts", func(m *memory.Store) eventlog.Store { return &conflicts{m} }},
	{"loses every append", func(m *memory.Store) eventlog.Store { return &losesAppends{m} }},
	{"fails every read", func(m *memory.Store) eventlog.Store { return &failsReads{m} }},
	{"reads nothing", func(m *memory.Store) eventlog.Store { return &readsNothing{m} }},
}

// The bounds of a promise of a hopeless store: most wait until the end of their context,
// and large ones take their time.
var hopelessLimit, hopelessGrace = testsize.Pick[time.Duration](5, 10, 500) * time.Millisecond, time.Minute

// TestHopeless checks that every promise ends, whatever the store does, and without a
// panic.
func TestHopeless[T any](t *testing.T, groups []Group[T], newEnv func(*Env) T) {
	for _, b := range hopelessStores {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel() // most promises wait
			failed := 0
			for _, g := range groups {
				for _, c := range g.Cases {
					r := try(t, c, b.Open, hopelessLimit, hopelessGrace, newEnv)
					if r.failed {
						failed++
					}
					for _, text := range r.texts {
						if strings.HasPrefix(text, "panic: ") || strings.Contains(text, neverEnds) {
							t.Errorf("promise %s/%s: %s", g.Name, c.Name, text)
						}
					}
				}
			}
			if failed == 0 {
				t.Error("no promise fails")
			}
		})
	}
}

type failsAppends struct{ *memory.Store }

func (*failsAppends) Append(context.Context, string, event.Head, []event.Event, bool) error {
	return ErrInjected
}

// failsLater fails all appends but the first ones.
type failsLater struct {
	*memory.Store
	appends atomic.Int64
}

func (s *failsLater) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if s.appends.Add(1) > 20 {
		return ErrInjected
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

type conflicts struct{ *memory.Store }

func (*conflicts) Append(_ context.Context, session string, expect event.Head, _ []event.Event, _ bool) error {
	return &eventlog.ConflictError{Session: session, Expected: expect}
}

type losesAppends struct{ *memory.Store }

func (*losesAppends) Append(context.Context, string, event.Head, []event.Event, bool) error {
	return nil
}

type failsReads struct{ *memory.Store }

func (*failsReads) Read(context.Context, string, eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) { yield(event.Event{}, ErrInjected) }
}

func (*failsReads) OpenBlob(context.Context, event.Digest) (io.ReadCloser, error) {
	return nil, ErrInjected
}

type readsNothing struct{ *memory.Store }

func (*readsNothing) Read(context.Context, string, eventlog.Span) iter.Seq2[event.Event, error] {
	return Sequence(nil)
}
