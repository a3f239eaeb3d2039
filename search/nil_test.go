package search_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
)

// Every function refuses a nil log, a log over a nil store and a nil context.
func TestNilArguments(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	var noContext context.Context
	for name, call := range map[string]func(ctx context.Context, log *eventlog.Log) error{
		"Events": func(ctx context.Context, log *eventlog.Log) (err error) {
			for _, err = range search.Events(ctx, log, search.Query{Text: "hello"}) {
			}
			return err
		},
		"Events of a session": func(ctx context.Context, log *eventlog.Log) (err error) {
			for _, err = range search.Events(ctx, log, search.Query{Text: "hello", Session: "s"}) {
			}
			return err
		},
		"Index": func(ctx context.Context, log *eventlog.Log) error { return search.Index(ctx, log, false) },
	} {
		if err := call(t.Context(), nil); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s of a nil log: %v", name, err)
		}
		if err := call(t.Context(), eventlog.Open(nil)); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s over a nil store: %v", name, err)
		}
		if err := call(noContext, log); !errors.Is(err, event.ErrNilArgument) {
			t.Errorf("%s with a nil context: %v", name, err)
		}
	}
}
