package verify_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/verify"
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
			_, err := verify.Session(ctx, log, "s")
			return err
		},
		"Lines": func(ctx context.Context, log *eventlog.Log) error {
			_, err := verify.New(log).Lines(ctx, "s")
			return err
		},
		"Events": func(ctx context.Context, log *eventlog.Log) error {
			_, err := verify.New(log).Events(ctx, "s", log.Read(ctx, "s", eventlog.All()))
			return err
		},
		"Store":     func(ctx context.Context, log *eventlog.Log) error { return last(verify.Store(ctx, log)) },
		"TornTails": func(ctx context.Context, log *eventlog.Log) error { return last(verify.TornTails(ctx, log)) },
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
	if _, err := verify.New(log).Events(ctx, "s", nil); !errors.Is(err, event.ErrNilArgument) {
		t.Errorf("verify nil events: %v", err)
	}
}

// last is the error at the end of a sequence, or nil.
func last[T any](sequence iter.Seq2[T, error]) (err error) {
	for _, err = range sequence {
	}
	return err
}
