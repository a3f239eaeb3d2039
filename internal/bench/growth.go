//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// shortLen is the number of events in the short session.
const shortLen = 1000

var growthTrials = []trial{
	{
		rows: []row{{
			name:     "result/jsonl",
			measured: "Append of a tool result at 100,000 events, session in use, no sync",
			against:  "the same at 1,000",
			unit:     nanoseconds, bar: atMost(1.3),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return resultHot(ctx, b, func() *eventlog.Log { log, _ := b.jsonl(never); return log })
		},
	},
	{
		rows: []row{{
			name:     "result/sqlite",
			measured: "Append of a tool result at 100,000 events, session in use, synchronous=OFF",
			against:  "the same at 1,000",
			unit:     nanoseconds, bar: atMost(1.3),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return resultHot(ctx, b, func() *eventlog.Log { log, _ := b.sqlite(unsynced); return log })
		},
	},
	{
		rows: []row{{
			name:     "result/jsonl-cold",
			measured: "first Append of a tool result after opening the store, at 100,000 events, no sync",
			against:  "the same at 1,000",
			unit:     nanoseconds,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			dir := b.path("")
			return resultCold(ctx, b, func() eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: never}) })
		},
	},
	{
		rows: []row{{
			name:     "result/sqlite-cold",
			measured: "first Append of a tool result after opening the store, at 100,000 events, synchronous=OFF",
			against:  "the same at 1,000",
			unit:     nanoseconds,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			path := b.path(".db")
			return resultCold(ctx, b, func() eventlog.Store {
				return sqlite.New(path, sqlite.Options{NoSync: unsynced})
			})
		},
	},
}

// growSessions creates sessions of 100,000 and 1,000 events. Both end with the same 64
// messages, so that an operation at the end reads the same in both.
func (b *bench) growSessions(ctx context.Context, log *eventlog.Log) (old, young string, err error) {
	old, young = b.name(), b.name()
	err = errors.Join(fill(ctx, log, old, b.sizes.history), fill(ctx, log, young, shortLen))
	for _, session := range []string{old, young} {
		err = errors.Join(err, appendAll(ctx, log, session, chat(32), batchLen))
	}
	return old, young, errors.Join(err, finishIndexing(ctx, log))
}

// chat returns n messages of the user, each with an answer.
func chat(n int) (events []event.Event) {
	w := newWriter()
	for range n {
		events = append(events, event.UserMessage(w.text(200)), event.New(assistant(event.Text(w.text(800)))))
	}
	return events
}

func resultHot(ctx context.Context, b *bench, open func() *eventlog.Log) ([]figure, error) {
	log := open()
	old, young, err := b.growSessions(ctx, log)
	if err != nil {
		return nil, err
	}
	at := func(session string) side {
		return func(ctx context.Context) (float64, error) { return b.timeResults(ctx, log, session, b.sizes.turns) }
	}
	return compare(ctx, b.sizes.rounds, at(old), at(young), samples.times)
}

// timeResults appends n calls and their results, and times the results.
func (b *bench) timeResults(ctx context.Context, log *eventlog.Log, session string, n int) (float64, error) {
	var took time.Duration
	for range n {
		done, err := b.callTool(ctx, log, session)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if _, err := log.Append(ctx, session, eventlog.Any(), done); err != nil {
			return 0, err
		}
		took += time.Since(start)
	}
	return float64(took.Nanoseconds()) / float64(n), nil
}

// callTool appends a call and returns its result.
func (b *bench) callTool(ctx context.Context, log *eventlog.Log, session string) (event.Event, error) {
	b.names++
	id := fmt.Sprintf("call_%d", b.names)
	call := event.New(assistant(event.ToolCall(id, "read_file", nil)))
	if _, err := log.Append(ctx, session, eventlog.Any(), call); err != nil {
		return event.Event{}, err
	}
	return event.New(result(id, newWriter().text(455))), nil
}

// resultCold opens the store again for each result.
func resultCold(ctx context.Context, b *bench, open func() eventlog.Store) ([]figure, error) {
	log := eventlog.Open(open())
	old, young, err := b.growSessions(ctx, log)
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	at := func(session string) side {
		return func(ctx context.Context) (float64, error) { return b.timeCold(ctx, open, session) }
	}
	return compare(ctx, b.sizes.rounds, at(old), at(young), samples.times)
}

func (b *bench) timeCold(ctx context.Context, open func() eventlog.Store, session string) (took float64, err error) {
	before := eventlog.Open(open())
	done, err := b.callTool(ctx, before, session)
	if err = errors.Join(err, before.Close()); err != nil {
		return 0, err
	}
	log := eventlog.Open(open())
	defer func() { err = errors.Join(err, log.Close()) }()
	start := time.Now()
	_, err = log.Append(ctx, session, eventlog.Any(), done)
	return float64(time.Since(start).Nanoseconds()), err
}
