//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
)

var flowTrials = []trial{
	{
		rows: []row{{
			name:     "flow/turn",
			measured: "a turn of an agent: an answer with 4 tool calls, their results, an answer, a snapshot; jsonl, durable",
			against:  "Append of the same events in the same groups",
			unit:     nanoseconds, bar: atMost(1.5),
		}},
		measure: flowTurn,
	},
	{
		rows: []row{{
			name:     "flow/resume",
			measured: "continuing a turn with 1,000 finished effects, up to the next effect, jsonl",
			against:  "Read of the session, and the payload of each event decoded",
			unit:     nanoseconds, bar: atMost(2),
		}, {
			name:     "flow/resume-read",
			measured: "the same",
			against:  "Read of the session",
			unit:     nanoseconds,
		}},
		measure: flowResume,
	},
	{
		rows: []row{{
			name:     "flow/replay-test",
			measured: "turns of flow/turn in a test against their recording",
			against:  "the same turns without a recording: the model and the tools run, in memory",
			unit:     perSecond, bar: atLeast(0.5),
		}, {
			name:     "flow/replay-test-read",
			measured: "the same",
			against:  "Read of the recording, and the history before each answer rendered",
			unit:     perSecond,
		}},
		measure: flowReplayTest,
	},
	{
		rows: []row{{
			name:     "flow/serve-reads",
			measured: "reads of events by Serve over 10,000 sessions in which nothing happens, jsonl",
			unit:     count, bar: zero,
		}, {
			name:     "flow/serve-idle",
			measured: "processor time of the same in a second",
			unit:     nanoseconds,
		}},
		measure: flowServe,
	},
}

// toolbox is an agent that answers each user with four tool calls, and then with a text.
type toolbox struct{}

type toolboxState struct{ Turns int }

func (toolbox) Generate(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
	m := event.Message{Provider: "example", Model: "example-1", Parts: []event.Part{event.Text(strings.Repeat("the answer. ", 20))},
		Usage: event.Usage{InputTokens: 1000, OutputTokens: 100}}
	if r.Messages[len(r.Messages)-1].Message.Role == event.User {
		for i := range 4 {
			id := fmt.Sprintf("call-%d-%d", len(r.Messages), i)
			m.Parts = append(m.Parts, event.ToolCall(id, "read_file", jsontext.Value(`{"path":"src/main.go","limit":200}`)))
		}
	}
	return flow.Response{Message: m}, nil
}

func toolboxAgent(log *eventlog.Log) *flow.Agent[toolboxState] {
	tool := flow.ToolSpec{Name: "read_file", Run: func(context.Context, event.Part) ([]event.Part, error) {
		return []event.Part{event.Text(strings.Repeat("the content of a file. ", 20))}, nil
	}}
	return &flow.Agent[toolboxState]{Name: "toolbox", Log: log, Turn: flow.Chat[toolboxState](toolbox{}, flow.Request{}, tool)}
}

// flowTurns is how many turns a session of the trial has. The history that the model
// gets grows with them.
const flowTurns = 20

func flowTurn(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(always)
	agent := toolboxAgent(log)
	session := b.name()
	turns := func(ctx context.Context) (float64, error) {
		session = b.name()
		start := time.Now()
		for range flowTurns {
			if _, err := agent.Run(ctx, session, flow.Text("What is in the files?")); err != nil {
				return 0, err
			}
		}
		return perItem(start, flowTurns), nil
	}
	bare := func(ctx context.Context) (float64, error) {
		groups, err := appendsOf(ctx, log, session)
		if err != nil {
			return 0, err
		}
		to := b.name()
		start := time.Now()
		for _, events := range groups {
			if _, err := log.Append(ctx, to, eventlog.Any().Durable(), events...); err != nil {
				return 0, err
			}
		}
		return perItem(start, flowTurns), nil
	}
	return compare(ctx, b.sizes.rounds, turns, bare, samples.times)
}

// appendsOf returns the events of a session as they were given to Append, each append by
// itself.
func appendsOf(ctx context.Context, log *eventlog.Log, session string) (groups [][]event.Event, err error) {
	var group []event.Event
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		again := event.Event{ID: e.ID, Type: e.Type, Data: e.Data, Cost: e.Cost}
		if err := again.AddBlobs(e.Blobs()...); err != nil {
			return nil, err
		}
		if group = append(group, again); e.More() == 0 {
			groups, group = append(groups, group), nil
		}
	}
	return groups, nil
}

// resumedEffects is how many finished effects the resumed turn has.
const resumedEffects = 1000

var errReplayed = errors.New("all effects are replayed")

func flowResume(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(never)
	session := b.name()
	inner, stop := context.WithCancelCause(ctx)
	var replayed time.Time
	agent := &flow.Agent[toolboxState]{Name: "long", Log: log}
	agent.Turn = func(ctx context.Context, t *flow.Turn[toolboxState]) error {
		for i := range resumedEffects {
			_, err := flow.Do(ctx, t, flow.Effect{Name: "step", Arguments: i}, func(context.Context) (string, error) {
				return strings.Repeat("the result of a step. ", 10), nil
			})
			if err != nil {
				return err
			}
		}
		replayed = time.Now()
		stop(errReplayed)
		<-ctx.Done()
		return ctx.Err()
	}
	run := func(ctx context.Context, in ...flow.Input) (float64, error) {
		inner, stop = context.WithCancelCause(ctx)
		start := time.Now()
		var h *flow.Handle[toolboxState]
		var err error
		if len(in) > 0 {
			h, err = agent.Send(inner, session, in[0])
		} else {
			h, err = agent.Resume(inner, flow.Ref{Session: session})
		}
		if err != nil {
			return 0, err
		}
		if _, err := h.Wait(ctx); !errors.Is(err, errReplayed) {
			return 0, fmt.Errorf("the turn ended: %w", err)
		}
		return float64(replayed.Sub(start).Nanoseconds()), nil
	}
	if _, err := run(ctx, flow.Text("Go.")); err != nil {
		return nil, err
	}
	resume := func(ctx context.Context) (float64, error) { return run(ctx) }
	decoded, err := pair(ctx, b.sizes.rounds, resume, readingOf(log, session, true))
	if err != nil {
		return nil, err
	}
	plain, err := pair(ctx, b.sizes.rounds, resume, readingOf(log, session, false))
	if err != nil {
		return nil, err
	}
	return []figure{decoded.times(), plain.times()}, nil
}

// readingOf reads a session, and perhaps decodes the payloads.
func readingOf(log *eventlog.Log, session string, decode bool) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		for e, err := range log.Read(ctx, session, eventlog.All()) {
			if err != nil {
				return 0, err
			}
			if decode {
				_, err = e.Payload()
			}
			if err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start).Nanoseconds()), nil
	}
}

func flowReplayTest(ctx context.Context, b *bench) ([]figure, error) {
	log := b.open(memory.New())
	session := b.name()
	var in []flow.Input
	for range flowTurns {
		in = append(in, flow.Text("What is in the files?"))
	}
	live := func(ctx context.Context) (float64, error) {
		session = b.name()
		start := time.Now()
		for _, x := range in {
			if _, err := toolboxAgent(log).Run(ctx, session, x); err != nil {
				return 0, err
			}
		}
		return perItem(start, flowTurns), nil
	}
	if _, err := live(ctx); err != nil {
		return nil, err
	}
	replayed := func(ctx context.Context) (float64, error) {
		start := time.Now()
		r, err := flowtest.Run(ctx, toolboxAgent(nil), log, session)
		if err != nil {
			return 0, err
		}
		return perItem(start, flowTurns), r.Log.Close()
	}
	against, err := pair(ctx, b.sizes.rounds, replayed, live)
	if err != nil {
		return nil, err
	}
	read, err := pair(ctx, b.sizes.rounds, replayed, renderingOf(log, session))
	if err != nil {
		return nil, err
	}
	return []figure{against.rates(), read.rates()}, nil
}

// renderingOf reads a session, and renders the history that each answer was given to.
func renderingOf(log *eventlog.Log, session string) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		live, err := projection.Resume(ctx, log, session, projection.Of("bench:history", projection.History()), projection.LiveOptions{At: 1})
		if err != nil {
			return 0, err
		}
		var rendering projection.Rendering
		for e, err := range log.Read(ctx, session, eventlog.From(2)) {
			if err == nil {
				err = live.Fold(ctx, e)
			}
			if err == nil && e.Type.Name() == event.StepStarted {
				h, _ := projection.State(live, projection.History())
				_, err = rendering.Messages(h)
			}
			if err != nil {
				return 0, err
			}
		}
		return perItem(start, flowTurns), nil
	}
}

// readCounter counts the reads of a store.
type readCounter struct {
	eventlog.Store
	reads atomic.Int64
}

func (s *readCounter) Unwrap() eventlog.Store { return s.Store }

func (s *readCounter) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	s.reads.Add(1)
	return s.Store.Read(ctx, session, span)
}

func flowServe(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.largeStore(ctx)
	if err != nil {
		return nil, err
	}
	counter := &readCounter{Store: jsonl.New(large.dir)}
	agent := toolboxAgent(b.open(counter))
	inner, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- agent.Serve(inner) }()
	if err := counter.settle(ctx); err != nil {
		return nil, err
	}
	reads, used := counter.reads.Load(), processorTime()
	const watched = 5 * time.Second
	time.Sleep(watched)
	used, reads = processorTime()-used, counter.reads.Load()-reads
	stop()
	return []figure{single(float64(reads)), single(float64(used.Nanoseconds()) / watched.Seconds())}, <-served
}

// settle waits until a second passes without a read.
func (s *readCounter) settle(ctx context.Context) error {
	for before := int64(-1); ctx.Err() == nil; time.Sleep(time.Second) {
		now := s.reads.Load()
		if now == before && now > 0 {
			return nil
		}
		before = now
	}
	return ctx.Err()
}

// processorTime is the time that all processors spent in this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
