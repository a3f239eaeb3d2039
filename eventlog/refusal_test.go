package eventlog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// twoHeaded is a store that compares appends with another head than it shows.
type twoHeaded struct{ *memory.Store }

func (s twoHeaded) Append(_ context.Context, session string, expect event.Head, _ []event.Event, _ bool) error {
	return s.refuse(session, expect)
}

func (s twoHeaded) Rewrite(_ context.Context, session string, expect event.Head, _, _ []event.Event) error {
	return s.refuse(session, expect)
}

func (twoHeaded) refuse(session string, expect event.Head) error {
	return &eventlog.ConflictError{Session: session, Expected: expect, Actual: event.Head{Seq: 7, Hash: event.Hash{7}}}
}

// An append ends with an error if a damaged store always refuses the head that it shows.
func TestAStoreOfTwoHeadsIsDamaged(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := memory.New()
	e := event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)}
	if _, err := eventlog.Open(m.Handle()).Append(ctx, "a", eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(twoHeaded{m})
	for name, write := range map[string]func() error{
		"append": func() error {
			_, err := log.Append(ctx, "a", eventlog.Any(), event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)})
			return err
		},
		"redact": func() error {
			_, err := erase.Redact(ctx, log, "a", []int64{1}, erase.RedactOptions{Reason: ""})
			return err
		},
	} {
		if err := write(); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
