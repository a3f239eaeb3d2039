package replaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// ErrNotRecorded means that the run asks for more model answers than the recording has,
// or for the result of a call that has no recorded result. Record again with -update.
var ErrNotRecorded = errors.New("not in the recording")

// Recording is a recorded session. It answers model and tool calls of the tested run.
// It may be used concurrently.
type Recording struct {
	path   string
	update bool
	opts   Options
	events []event.Event

	mu      sync.Mutex
	answers []event.Event
	results map[string][]event.Part // by the id of the call
}

// Open reads the recording at path, as Load does, for a run that calls Model and Tool
// and ends with Check. With Options.Update the run calls the real model and tools,
// and Check writes the recording. Open uses the first of several Options.
func Open(t testing.TB, path string, opts ...Options) *Recording {
	t.Helper()
	r := &Recording{path: path, results: map[string][]event.Part{}}
	if len(opts) > 0 {
		r.opts, r.update = opts[0], opts[0].Update
	}
	if r.update {
		return r
	}
	r.events = load(t, path)
	for i := range r.events {
		if err := r.add(&r.events[i]); err != nil {
			t.Fatalf("load %s: event %d: %v", path, r.events[i].Seq, err)
		}
	}
	return r
}

func (r *Recording) add(e *event.Event) error {
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		return err
	}
	if m.Role == event.Assistant {
		answer := event.New(m)
		answer.Cost, answer.Metadata = e.Cost, e.Metadata
		r.answers = append(r.answers, answer)
	}
	for _, result := range m.ToolResults() {
		r.results[result.CallID] = append(r.results[result.CallID], result)
	}
	return nil
}

// Model replaces live, a function that asks a model and returns its answer: an event
// to append. It returns the assistant messages of the recording, in order, with their
// costs and metadata. It ignores the request; Check finds a different request if the
// run appends it. After the last answer it returns ErrNotRecorded. With
// Options.Update it returns live; otherwise live may be nil.
func Model[Request any](r *Recording, live func(context.Context, Request) (event.Event, error)) func(context.Context, Request) (event.Event, error) {
	if r.update {
		return live
	}
	return func(ctx context.Context, _ Request) (event.Event, error) {
		if err := ctx.Err(); err != nil {
			return event.Event{}, err
		}
		return r.answer()
	}
}

func (r *Recording) answer() (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) == 0 {
		return event.Event{}, fmt.Errorf("%s: the run asks for another answer of the model: %w", r.path, ErrNotRecorded)
	}
	answer := r.answers[0]
	r.answers = r.answers[1:]
	return answer, nil
}

// Tool replaces live, a function that runs a tool. It returns the recorded result of
// the call, a part of type tool_result, found by call id. For a call without a
// recorded result it returns ErrNotRecorded. With Options.Update it returns live;
// otherwise live may be nil.
func (r *Recording) Tool(live func(ctx context.Context, call event.Part) (event.Part, error)) func(ctx context.Context, call event.Part) (event.Part, error) {
	if r.update {
		return live
	}
	return func(ctx context.Context, call event.Part) (event.Part, error) {
		if err := ctx.Err(); err != nil {
			return event.Part{}, err
		}
		return r.result(call)
	}
}

func (r *Recording) result(call event.Part) (event.Part, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	results := r.results[call.CallID]
	if len(results) == 0 {
		return event.Part{}, fmt.Errorf("%s: the result of call %q of %s: %w", r.path, call.CallID, call.Name, ErrNotRecorded)
	}
	r.results[call.CallID] = results[1:]
	return results[0], nil
}

// Check compares a session with the recording, as Compare does. With Options.Update
// it writes the session to the file of the recording instead, unless the test has
// failed.
func (r *Recording) Check(t testing.TB, log *eventlog.Log, session string) {
	t.Helper()
	if !r.update {
		Compare(t, replay.Of(r.events...), log.Read(context.Background(), session, eventlog.All()), r.opts)
		return
	}
	if t.Failed() {
		return
	}
	var text bytes.Buffer
	err := transfer.Export(context.Background(), log, &text, session)
	if err == nil {
		err = os.WriteFile(r.path, text.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatalf("record %s: %v", r.path, err)
	}
}

// Load reads a recorded session: an export (transfer.Export), or the session's file
// of a jsonl store if it needs no blobs. Of an export with several sessions it
// returns the lineage of the last one. It ends the test if the file is unreadable or
// damaged.
func Load(t testing.TB, path string) iter.Seq2[event.Event, error] {
	t.Helper()
	return replay.Of(load(t, path)...)
}

func load(t testing.TB, path string) (events []event.Event) {
	t.Helper()
	events, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Fatalf("load the recording: %v (record it with Options.Update)", err)
	case err != nil:
		t.Fatalf("load the recording %s: %v", path, err)
	case len(events) == 0:
		t.Fatalf("load the recording %s: it has no events; record it with Options.Update", path)
	}
	return events
}

func read(path string) (events []event.Event, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	sessions, err := transfer.Import(context.Background(), log, file)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	for e, err := range log.Read(context.Background(), sessions[len(sessions)-1].Session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
