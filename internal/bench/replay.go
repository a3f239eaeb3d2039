//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

var replayTrials = []trial{
	{
		rows: []row{{
			name:     "replay/history",
			measured: "Load of the effective history of 100,000 events without any snapshot, jsonl",
			against:  "json.Unmarshal of the payloads of its messages, which are in memory, each into a Message",
			unit:     nanoseconds, bar: atMost(0.8),
		}},
		measure: replayHistory,
	},
	{
		rows: []row{{
			name:     "render/history",
			measured: "Messages of the effective history of 100,000 events, which is loaded",
			against:  "json.Unmarshal of the payloads of its messages, which are in memory, each into a Message",
			unit:     nanoseconds,
		}},
		measure: renderHistory,
	},
	{
		rows: []row{{
			name:     "replay/messages",
			measured: "the same Load, and Messages rendered of it",
			against:  "Read of all events and json.Unmarshal of the messages among them into Messages that stay in memory",
			unit:     nanoseconds,
		}},
		measure: replayMessages,
	},
	{
		rows: []row{{
			name:     "replay/memory",
			measured: "live heap of the effective history of 100,000 events",
			against:  "size of the file",
			unit:     sizeInBytes, bar: atMost(1.3),
		}},
		measure: replayMemory,
	},
	{
		rows: []row{{
			name:     "replay/tools-growth",
			measured: "Load of the effective history without any snapshot, per event: 100,000 events, half of them tool_started and tool_completed, jsonl",
			against:  "the same of 10,000 events",
			unit:     nanoseconds, bar: atMost(1.3),
		}},
		measure: replayTools,
	},
}

// replayTools measures a fold that keeps the tool results until messages have them.
func replayTools(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(never)
	at := func(n int) (side, error) {
		session := b.name()
		err := appendAll(ctx, log, session, toolEvents(n), batchLen)
		return func(ctx context.Context) (float64, error) {
			start := time.Now()
			_, err := projection.Load(ctx, log, session, projection.History(), projection.Options{Replay: true})
			return perItem(start, n), err
		}, err
	}
	old, err := at(b.sizes.history)
	if err != nil {
		return nil, err
	}
	young, err := at(b.sizes.history / 10)
	if err != nil {
		return nil, err
	}
	return compare(ctx, b.sizes.rounds, old, young, samples.times)
}

// toolEvents returns about n events: calls, each with its tool_started, its
// tool_completed and the message with its result.
func toolEvents(n int) (events []event.Event) {
	w := newWriter()
	for len(events) < n {
		id := fmt.Sprintf("call_%08d", len(events))
		text := w.text(455)
		events = append(events,
			event.New(assistant(event.Text(w.text(60)), event.ToolCall(id, "read_file", nil))),
			event.New(event.ToolStart{CallID: id, Name: "read_file"}),
			event.New(event.ToolCompletion{CallID: id, Name: "read_file", Content: []event.Part{event.Text(text)}}),
			event.New(result(id, text)))
	}
	return events
}

func (h *history) replay(ctx context.Context) (*projection.HistoryState, error) {
	v, err := projection.Load(ctx, h.log, longSession, projection.History(), projection.Options{Replay: true})
	return &v.State, err
}

func replayHistory(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longHistory(ctx)
	if err != nil {
		return nil, err
	}
	load := func(ctx context.Context) (float64, error) {
		start := time.Now()
		s, err := h.replay(ctx)
		took := float64(time.Since(start).Nanoseconds())
		runtime.KeepAlive(s)
		return took, err
	}
	return compare(ctx, b.sizes.rounds, load, h.decodeMessages, samples.times)
}

// renderHistory measures the rendering of a state that is in memory.
func renderHistory(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longHistory(ctx)
	if err != nil {
		return nil, err
	}
	s, err := h.replay(ctx)
	if err != nil {
		return nil, err
	}
	render := func(context.Context) (float64, error) {
		start := time.Now()
		entries, err := s.Messages()
		took := float64(time.Since(start).Nanoseconds())
		runtime.KeepAlive(entries)
		return took, err
	}
	return compare(ctx, b.sizes.rounds, render, h.decodeMessages, samples.times)
}

// decodeMessages times the decoding of the session's messages, which are in memory.
func (h *history) decodeMessages(ctx context.Context) (float64, error) {
	events, err := h.messages(ctx)
	if err != nil {
		return 0, err
	}
	runtime.GC()
	start := time.Now()
	for i := range events {
		var m event.Message
		if err := json.Unmarshal(events[i].Data, &m); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()), nil
}

// messages returns the events of the long session that are messages.
func (h *history) messages(ctx context.Context) (events []event.Event, err error) {
	for e, err := range h.log.Read(ctx, longSession, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		if e.Type == event.MessageAdded {
			events = append(events, e)
		}
	}
	return events, nil
}

func replayMessages(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longHistory(ctx)
	if err != nil {
		return nil, err
	}
	render := func(ctx context.Context) (float64, error) {
		start := time.Now()
		s, err := h.replay(ctx)
		if err != nil {
			return 0, err
		}
		entries, err := s.Messages()
		took := float64(time.Since(start).Nanoseconds())
		runtime.KeepAlive(entries)
		return took, err
	}
	decode := func(ctx context.Context) (float64, error) {
		start := time.Now()
		messages := make([]event.Message, 0, b.sizes.history)
		for e, err := range h.log.Read(ctx, longSession, eventlog.All()) {
			if err != nil {
				return 0, err
			}
			if e.Type != event.MessageAdded {
				continue
			}
			var m event.Message
			if err := json.Unmarshal(e.Data, &m); err != nil {
				return 0, err
			}
			messages = append(messages, m)
		}
		took := float64(time.Since(start).Nanoseconds())
		runtime.KeepAlive(messages)
		return took, nil
	}
	return compare(ctx, b.sizes.rounds, render, decode, samples.times)
}

func replayMemory(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longHistory(ctx)
	if err != nil {
		return nil, err
	}
	size, err := h.size()
	if err != nil {
		return nil, err
	}
	before := liveHeap()
	s, err := h.replay(ctx)
	if err != nil {
		return nil, err
	}
	grown := liveHeap() - before
	runtime.KeepAlive(s)
	return []figure{{ours: grown, theirs: size, ratio: grown / size}}, nil
}
