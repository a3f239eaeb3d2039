package eventlog_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
)

// last is the error of a sequence, or nil.
func last[T any](sequence iter.Seq2[T, error]) (err error) {
	for _, err = range sequence {
	}
	return err
}

// operations are all methods of a Log that return an error.
var operations = map[string]func(ctx context.Context, log *eventlog.Log) error{
	"Ancestors": func(ctx context.Context, log *eventlog.Log) error { return last(log.Ancestors(ctx, "s")) },
	"Append": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Append(ctx, "s", eventlog.Any(), event.UserMessage("hello"))
		return err
	},
	"AppendEach": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.AppendEach(ctx, "s", eventlog.Any(), []event.Event{event.UserMessage("hello")})
		return err
	},
	"CheckAncestor": func(ctx context.Context, log *eventlog.Log) error {
		return log.CheckAncestor(ctx, eventlog.Ancestor{Session: "s"})
	},
	"Event": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Event(ctx, "s", 1)
		return err
	},
	"Forks": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Forks(ctx)
		return err
	},
	"Head": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Head(ctx, "s")
		return err
	},
	"Hold": func(ctx context.Context, log *eventlog.Log) error {
		return log.Hold(ctx, func(context.Context) error { return nil })
	},
	"OpenArtifact": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.OpenArtifact(ctx, event.Artifact{Body: event.BlobRef{Blob: event.DigestOf(nil)}})
		return err
	},
	"OpenBlob": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.OpenBlob(ctx, event.DigestOf(nil))
		return err
	},
	"Path": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Path(ctx, "s", 0)
		return err
	},
	"Ping": func(ctx context.Context, log *eventlog.Log) error { return log.Ping(ctx) },
	"PutBlob": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.PutBlob(ctx, strings.NewReader("body"))
		return err
	},
	"Read": func(ctx context.Context, log *eventlog.Log) error { return last(log.Read(ctx, "s", eventlog.All())) },
	"Read, OnPath": func(ctx context.Context, log *eventlog.Log) error {
		return last(log.Read(ctx, "s", eventlog.All().OnPath()))
	},
	"Read, Last": func(ctx context.Context, log *eventlog.Log) error { return last(log.Read(ctx, "s", eventlog.Last(1))) },
	"Read, Until": func(ctx context.Context, log *eventlog.Log) error {
		return last(log.Read(ctx, "s", eventlog.All().Until(ulid.ULID{1})))
	},
	"Resolve": func(ctx context.Context, log *eventlog.Log) error {
		_, err := log.Resolve(ctx, "s")
		return err
	},
	"Sessions": func(ctx context.Context, log *eventlog.Log) error { return last(log.Sessions(ctx)) },
	"StoreArtifact": func(ctx context.Context, log *eventlog.Log) error {
		_, _, err := log.StoreArtifact(ctx, "s", eventlog.Any(), event.Artifact{Name: "a"}, strings.NewReader("body"))
		return err
	},
	"Watch": func(ctx context.Context, log *eventlog.Log) error { return last(log.Watch(ctx, "s", 1)) },
}

// Every method of a nil log, of a log over a nil store and with a nil context returns
// an error.
func TestNilLogAndContext(t *testing.T) {
	var noContext context.Context
	log := testkit.Open(t, memory.New())
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	for name, call := range operations {
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

// The other arguments that may be nil are errors too, or mean an empty value.
func TestNilArguments(t *testing.T) {
	log, ctx := testkit.Open(t, memory.New()), t.Context()
	var noContext context.Context
	var noPayload *event.Artifact
	appended := func(ctx context.Context, e event.Event) error {
		_, err := log.Append(ctx, "s", eventlog.Any(), e)
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"Hold of a nil function":  {log.Hold(ctx, nil), event.ErrNilArgument},
		"PutBlob of a nil reader": {func() error { _, err := log.PutBlob(ctx, nil); return err }(), event.ErrNilArgument},
		"StoreArtifact, nil reader": {func() error {
			_, _, err := log.StoreArtifact(ctx, "s", eventlog.Any(), event.Artifact{}, nil)
			return err
		}(), event.ErrNilArgument},
		"Append, nil payload":       {appended(ctx, event.New(nil)), event.ErrInvalid},
		"Append, nil pointer":       {appended(ctx, event.New(noPayload)), event.ErrInvalid},
		"Append, empty event":       {appended(ctx, event.Event{}), event.ErrInvalid},
		"Append, nil metadata":      {appended(eventlog.WithMetadata(ctx, nil), event.UserMessage("hello")), nil},
		"WithMetadata, nil context": {appended(eventlog.WithMetadata(noContext, map[string]any{"a": 1}), event.UserMessage("hello")), event.ErrNilArgument},
		"AppendEach of nothing":     {func() error { _, err := log.AppendEach(ctx, "s", eventlog.Any(), nil); return err }(), nil},
		"Close of a nil log":        {(*eventlog.Log)(nil).Close(), nil},
		"Close over a nil store":    {eventlog.Open(nil).Close(), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v", name, c.got)
		}
	}
	(*eventlog.Log)(nil).Publish("s", eventlog.Delta{})
	for range (*eventlog.Log)(nil).Deltas(ctx, "s") {
		t.Error("a nil log yields a delta")
	}
	for range log.Deltas(noContext, "s") {
		t.Error("a nil context yields a delta")
	}
	if _, ok := eventlog.As[eventlog.Blobs](nil); ok || (*eventlog.Log)(nil).Store() != nil || (*eventlog.ForkMap)(nil).Sharing("s", 1) != nil {
		t.Error("a nil store has an ability, a nil log a store, or a nil map a fork")
	}
}
