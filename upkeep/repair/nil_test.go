package repair_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/repair"
)

// Every function refuses a nil log, a log over a nil store and a nil context.
func TestNilArguments(t *testing.T) {
	log, ctx := eventlog.Open(memory.New()), t.Context()
	defer log.Close()
	if _, err := log.Append(ctx, "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	var noContext context.Context
	for name, call := range map[string]func(ctx context.Context, log *eventlog.Log) error{
		"Session": func(ctx context.Context, log *eventlog.Log) error {
			_, err := repair.Session(ctx, log, "s")
			return err
		},
		"Session, DryRun": func(ctx context.Context, log *eventlog.Log) error {
			_, err := repair.Session(ctx, log, "s", repair.Options{DryRun: true})
			return err
		},
	} {
		if err := call(ctx, nil); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s of a nil log: %v", name, err)
		}
		if err := call(ctx, eventlog.Open(nil)); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s over a nil store: %v", name, err)
		}
		if err := call(noContext, log); !errors.Is(err, event.ErrNilArgument) {
			t.Errorf("%s with a nil context: %v", name, err)
		}
	}
	if _, err := repair.Session(ctx, log, "s", repair.Options{Into: nil}); err != nil {
		t.Errorf("repair into a nil log: %v", err)
	}
}
