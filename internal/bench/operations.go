//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// operation is a use of one session whose cost may grow with the session.
type operation struct {
	name string
	// prepare returns the operation on a session, which is alone in its log. Only the
	// operation is measured. Sessions that it creates have the next ids of bench.name.
	prepare func(ctx context.Context, b *bench, log *eventlog.Log, session string) (run func() error, err error)
}

// on is an operation without a preparation.
func on(name string, run func(ctx context.Context, log *eventlog.Log, session string) error) operation {
	return operation{name, func(ctx context.Context, _ *bench, log *eventlog.Log, session string) (func() error, error) {
		return func() error { return run(ctx, log, session) }, nil
	}}
}

// onCopy is an operation that changes a copy of the session.
func onCopy(name string, run func(ctx context.Context, log *eventlog.Log, session string) error) operation {
	return operation{name, func(ctx context.Context, b *bench, log *eventlog.Log, session string) (func() error, error) {
		id := b.name()
		_, err := fork.Copy(ctx, log, session, fork.CopyOptions{ID: id})
		return func() error { return run(ctx, log, id) }, err
	}}
}

var operations = slices.Concat([]operation{
	{"append", appendCopies},
	on("read", readEach(eventlog.All().Transient())),
	on("read-path", readEach(eventlog.All().OnPath().Transient())),
	on("states", func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := projection.LoadSet(ctx, log, session, projection.Session())
		return err
	}),
	{"render", renderLoaded},
	on("steps", func(ctx context.Context, log *eventlog.Log, session string) error {
		for _, err := range projection.Steps(ctx, log, session, projection.Session(), 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}),
	on("cost", func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := stats.LoadCost(ctx, log, session)
		return err
	}),
	on("stats", func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := stats.Load(ctx, log, session)
		return err
	}),
	on("run", func(ctx context.Context, log *eventlog.Log, session string) error {
		run, err := runlog.Load(ctx, log, session)
		if err == nil {
			run.Log(true)
			run.Episodes()
			err = run.OpTreeFile().Write(io.Discard)
		}
		return err
	}),
	on("files", func(ctx context.Context, log *eventlog.Log, session string) error {
		for _, err := range files.Of(ctx, log, session, eventlog.All(), formats.FileTools) {
			if err != nil {
				return err
			}
		}
		return nil
	}),
	on("branches", func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := fork.Branches(ctx, log, session, false)
		return err
	}),
	on("verify", func(ctx context.Context, log *eventlog.Log, session string) error {
		return verifySound(ctx, verify.New(log), session)
	}),
	on("search", func(ctx context.Context, log *eventlog.Log, _ string) error {
		_, err := countHits(ctx, log, search.Query{Text: noWord})
		return err
	}),
	on("export", func(ctx context.Context, log *eventlog.Log, session string) error {
		return transfer.Export(ctx, log, io.Discard, session)
	}),
	{"fork", func(ctx context.Context, b *bench, log *eventlog.Log, session string) (func() error, error) {
		return func() error {
			_, err := fork.At(ctx, log, session, fork.Head(), fork.Options{ID: b.name()})
			return err
		}, nil
	}},
	{"copy", func(ctx context.Context, b *bench, log *eventlog.Log, session string) (func() error, error) {
		return func() error {
			_, err := fork.Copy(ctx, log, session, fork.CopyOptions{ID: b.name()})
			return err
		}, nil
	}},
	onCopy("snapshot", func(ctx context.Context, log *eventlog.Log, session string) error {
		live, err := projection.Resume(ctx, log, session, projection.Session())
		if err == nil {
			_, _, err = live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true})
		}
		return err
	}),
	onCopy("rewind", func(ctx context.Context, log *eventlog.Log, session string) error {
		head, err := log.Head(ctx, session)
		if err == nil {
			_, err = fork.Rewind(ctx, log, session, fork.AtSeq(head.Seq/2/batchLen*batchLen))
		}
		if errors.Is(err, fork.Error("no_move")) {
			return nil // no event of the shape is on a path
		}
		if err == nil {
			_, err = fork.Recover(ctx, log, session)
		}
		return err
	}),
	onCopy("redact", func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := erase.Redact(ctx, log, session, []int64{1})
		return err
	}),
}, replays())

// replays are the replays of each projection.
func replays() (operations []operation) {
	for _, name := range projection.Names() {
		operations = append(operations, on("replay-"+name, func(ctx context.Context, log *eventlog.Log, session string) error {
			part, err := projection.ByName(name)
			if err == nil {
				_, err = projection.LoadSet(ctx, log, session, projection.Of("", part), projection.Options{Replay: true})
			}
			return err
		}))
	}
	return operations
}

// appendCopies appends new events with the payloads of the session to another session, one
// by one.
func appendCopies(ctx context.Context, b *bench, log *eventlog.Log, session string) (func() error, error) {
	var events []event.Event
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		events = append(events, event.Event{ID: event.NewID(), Type: e.Type, Data: e.Data})
	}
	to := b.name()
	return func() error { return appendEach(ctx, log, to, events) }, nil
}

func readEach(r eventlog.Range) func(ctx context.Context, log *eventlog.Log, session string) error {
	return func(ctx context.Context, log *eventlog.Log, session string) error {
		for _, err := range log.Read(ctx, session, r) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func renderLoaded(ctx context.Context, _ *bench, log *eventlog.Log, session string) (func() error, error) {
	loaded, err := projection.Load(ctx, log, session, projection.History(), projection.Options{Replay: true})
	return func() error {
		_, err := loaded.State.Messages()
		return err
	}, err
}
