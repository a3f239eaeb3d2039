package eventlog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/storetest"
)

// twoHeaded is a store that compares appends with another head than it shows.
type twoHeaded struct{ *storetest.Memory }

func (s twoHeaded) Append(_ context.Context, session string, expect eventlog.Head, _ []eventlog.Event, _ bool) error {
	return s.refuse(session, expect)
}

func (s twoHeaded) Rewrite(_ context.Context, session string, expect eventlog.Head, _, _ []eventlog.Event) error {
	return s.refuse(session, expect)
}

func (twoHeaded) refuse(session string, expect eventlog.Head) error {
	return &eventlog.ConflictError{Session: session, Expected: expect, Actual: eventlog.Head{Seq: 7, Hash: eventlog.Hash{7}}}
}

// A damaged store that refuses the head that it shows keeps nobody waiting.
func TestAStoreOfTwoHeadsIsDamaged(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := storetest.NewMemory()
	e := eventlog.Event{ID: eventlog.NewID(), Type: "test:note", Data: []byte(`{}`)}
	if _, err := eventlog.Open(m.Handle()).Append(ctx, "a", eventlog.New, e); err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(twoHeaded{m})
	for name, write := range map[string]func() error{
		"append": func() error {
			_, err := log.Append(ctx, "a", eventlog.Any, eventlog.Event{ID: eventlog.NewID(), Type: "test:note", Data: []byte(`{}`)})
			return err
		},
		"redact": func() error {
			_, err := log.Redact(ctx, "a", "", 1)
			return err
		},
	} {
		if err := write(); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
