package transfer_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// Every function refuses a nil log, a log over a nil store and a nil context.
func TestNilArguments(t *testing.T) {
	log, ctx := eventlog.Open(memory.New()), t.Context()
	defer log.Close()
	if _, err := log.Append(ctx, "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	ref, err := log.PutBlob(ctx, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	var noContext context.Context
	for name, call := range map[string]func(ctx context.Context, log *eventlog.Log) error{
		"Adopt": func(ctx context.Context, log *eventlog.Log) error {
			_, err := transfer.Adopt(ctx, log, "s", log.Read(ctx, "s", eventlog.All()))
			return err
		},
		"Backup to": func(ctx context.Context, log *eventlog.Log) error {
			return last(transfer.Backup(ctx, log, eventlog.Open(memory.New())))
		},
		"Backup of": func(ctx context.Context, log *eventlog.Log) error {
			return last(transfer.Backup(ctx, eventlog.Open(memory.New()), log))
		},
		"Convert to": func(ctx context.Context, to *eventlog.Log) error { return last(transfer.Convert(ctx, to, log)) },
		"Convert of": func(ctx context.Context, log *eventlog.Log) error {
			return last(transfer.Convert(ctx, eventlog.Open(memory.New()), log))
		},
		"CopyBlob to": func(ctx context.Context, to *eventlog.Log) error { return transfer.CopyBlob(ctx, to, log, ref.Blob) },
		"CopyBlob of": func(ctx context.Context, log *eventlog.Log) error {
			return transfer.CopyBlob(ctx, eventlog.Open(memory.New()), log, ref.Blob)
		},
		"Export":            func(ctx context.Context, log *eventlog.Log) error { return transfer.Export(ctx, log, io.Discard, "s") },
		"Export of nothing": func(ctx context.Context, log *eventlog.Log) error { return transfer.Export(ctx, log, io.Discard) },
		"Import": func(ctx context.Context, log *eventlog.Log) error {
			_, err := transfer.Import(ctx, log, strings.NewReader(""))
			return err
		},
		"Session to": func(ctx context.Context, to *eventlog.Log) error {
			_, err := transfer.Session(ctx, to, log, "s")
			return err
		},
		"Session of": func(ctx context.Context, log *eventlog.Log) error {
			_, err := transfer.Session(ctx, eventlog.Open(memory.New()), log, "s")
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
	for name, err := range map[string]error{
		"Adopt of nil events":    func() error { _, err := transfer.Adopt(ctx, log, "s", nil); return err }(),
		"Export to a nil writer": transfer.Export(ctx, log, nil, "s"),
		"Import of a nil reader": func() error { _, err := transfer.Import(ctx, log, nil); return err }(),
	} {
		if !errors.Is(err, event.ErrNilArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// last is the error at the end of a sequence, or nil.
func last[T any](sequence iter.Seq2[T, error]) (err error) {
	for _, err = range sequence {
	}
	return err
}
