package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/sqlite"
)

// turnLen is the number of events in a turn: the user's message, an assistant message
// with a tool call, its result, another call, its result, the answer. The lines have
// 708 bytes on average.
const turnLen = 6

// turns returns n events, in turns. They may be appended once to each of several
// sessions.
func turns(n int) ([]event.Event, error) {
	w := newWriter()
	return makeEvents(n, w.payload)
}

// transcript returns n events, in turns with texts that are longer by a factor.
func transcript(n, scale int) ([]event.Event, error) {
	w := newWriter()
	w.scale = scale
	return makeEvents(n, w.payload)
}

// users returns n user messages of average length, which need no order.
func users(n int) ([]event.Event, error) {
	w := newWriter()
	return makeEvents(n, func(int) event.Message {
		return event.Message{Role: event.User, Parts: []event.Part{event.Text(w.text(300))}}
	})
}

func makeEvents(n int, payload func(i int) event.Message) ([]event.Event, error) {
	events := make([]event.Event, n)
	for i := range events {
		e := event.New(payload(i))
		events[i] = e
	}
	return events, nil
}

// writer generates conversations, the same ones each time.
type writer struct {
	rand  *rand.Rand
	scale int // factor of the texts' lengths
}

func newWriter() *writer { return &writer{rand: rand.New(rand.NewPCG(1, 2)), scale: 1} }

// payload returns the payload at place i of a session.
func (w *writer) payload(i int) event.Message {
	call := fmt.Sprintf("call_%08d", i/turnLen*turnLen+(i%turnLen-1)/2)
	switch i % turnLen {
	case 0:
		return event.Message{Role: event.User, Parts: []event.Part{event.Text(w.text(260))}}
	case 1, 3:
		arguments := fmt.Sprintf(`{"path":"src/%s.go","limit":200}`, w.word())
		return assistant(event.Text(w.text(60)), event.ToolCall(call, "read_file", []byte(arguments)))
	case 2, 4:
		return result(call, w.text(455))
	default:
		return assistant(event.Text(w.text(320)))
	}
}

func assistant(parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Provider: "example", Model: "example-1", Parts: parts}
}

func result(call, text string) event.Message {
	part := event.ToolResult(call, "read_file", event.Text(text))
	return event.Message{Role: event.Tool, Parts: []event.Part{part}}
}

// text returns about n bytes of prose with some line breaks.
func (w *writer) text(n int) string {
	var b strings.Builder
	n *= w.scale
	for n += w.rand.IntN(n/2+1) - n/4; b.Len() < n; {
		b.WriteString(w.word())
		if w.rand.IntN(12) == 0 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

var words = strings.Fields(`the parser reads a token and then another until the file ends so that
	every error names its line and its column which helps whoever has to mend it later a test
	shows the case that failed and the value that was expected instead of the one found`)

func (w *writer) word() string { return words[w.rand.IntN(len(words))] }

// appendEach appends the events one by one.
func appendEach(ctx context.Context, log *eventlog.Log, session string, events []event.Event) error {
	for i := range events {
		if _, err := log.Append(ctx, session, eventlog.Any(), events[i]); err != nil {
			return err
		}
	}
	return nil
}

// appendAll appends the events in batches.
func appendAll(ctx context.Context, log *eventlog.Log, session string, events []event.Event, batch int) error {
	for len(events) > 0 {
		n := min(batch, len(events))
		if _, err := log.Append(ctx, session, eventlog.Any(), events[:n]...); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// fill creates a session of n events.
func fill(ctx context.Context, log *eventlog.Log, session string, n int) error {
	events, err := turns(n)
	if err != nil {
		return err
	}
	if err := appendAll(ctx, log, session, events, 100*turnLen); err != nil {
		return err
	}
	return finishIndexing(ctx, log)
}

// finishIndexing waits until the store has finished background work, so that the next
// measurement does not include it.
func finishIndexing(ctx context.Context, log *eventlog.Log) error {
	if err := search.Index(ctx, log, false); !errors.Is(err, eventlog.ErrUnsupported) {
		return err
	}
	return nil
}

// linesOf returns the lines that the events' append wrote, newlines included. The raw
// side writes the same bytes.
func linesOf(ctx context.Context, log *eventlog.Log, session string, events []event.Event) ([][]byte, error) {
	if err := appendEach(ctx, log, session, events); err != nil {
		return nil, err
	}
	lines := make([][]byte, 0, len(events))
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, append(bytes.Clone(e.Line()), '\n'))
	}
	return lines, nil
}

// fixtures are created on first use.
type fixtures struct {
	jsonl, sqlite *history
	store         *store
}

// history is a log with one long session, and the session's file.
type history struct {
	log  *eventlog.Log
	file string
}

// longSession is the id of the long session.
const longSession = "long"

func (b *bench) longJSONL(ctx context.Context) (*history, error) {
	if b.shared.jsonl == nil {
		log, dir := b.jsonl(never)
		if err := fill(ctx, log, longSession, b.sizes.history); err != nil {
			return nil, err
		}
		b.shared.jsonl = &history{log: log, file: filepath.Join(dir, longSession+".jsonl")}
	}
	return b.shared.jsonl, nil
}

func (b *bench) longSQLite(ctx context.Context) (*history, error) {
	if b.shared.sqlite == nil {
		log, path := b.sqlite(unsynced)
		err := errors.Join(fill(ctx, log, longSession, b.sizes.history), log.Close()) // so that no background work runs during the measurement
		if err != nil {
			return nil, err
		}
		log = b.open(sqlite.New(path, sqlite.Options{Sync: unsynced}))
		b.shared.sqlite = &history{log: log, file: path}
	}
	return b.shared.sqlite, nil
}

// store is a jsonl store of many sessions.
type store struct {
	log      *eventlog.Log
	dir      string
	sessions []string
}

func (b *bench) largeStore(ctx context.Context) (*store, error) {
	if b.shared.store != nil {
		return b.shared.store, nil
	}
	log, dir := b.jsonl(never)
	s := &store{log: log, dir: dir}
	events, err := turns(2 * turnLen)
	if err != nil {
		return nil, err
	}
	for i := range b.sizes.sessions {
		s.sessions = append(s.sessions, fmt.Sprintf("s%05d", i))
		if err := appendEach(ctx, log, s.sessions[i], events); err != nil {
			return nil, err
		}
	}
	b.shared.store = s
	return s, nil
}

func (h *history) size() (float64, error) {
	info, err := os.Stat(h.file)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()), nil
}
