//go:build unix

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
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/sqlite"
)

// batchLen is the number of events of an append that fills a session.
const batchLen = 100

// users returns n messages of users, which need no order.
func users(n int) []event.Event {
	w, events := newWriter(), make([]event.Event, n)
	for i := range events {
		events[i] = event.UserMessage(w.text(w.draw(userTexts)))
	}
	return events
}

// writer generates texts, the same ones each time.
type writer struct{ rand *rand.Rand }

func newWriter() *writer { return seededWriter(2) }

// seededWriter returns a writer whose texts differ from the texts of other seeds.
func seededWriter(seed int) *writer { return &writer{rand: rand.New(rand.NewPCG(1, uint64(seed)))} }

func assistant(parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Provider: "example", Model: "example-1", Parts: parts}
}

func result(call, text string) event.Message {
	part := event.ToolResult(call, "read_file", event.Text(text))
	return event.Message{Role: event.Tool, Parts: []event.Part{part}}
}

// text returns n bytes of prose with some line breaks, at least one.
func (w *writer) text(n int) string {
	n = max(n, 1)
	at := w.rand.IntN(len(prose()) - n)
	return prose()[at : at+n]
}

// prose is the text that all texts are parts of.
var prose = sync.OnceValue(func() string {
	const size = 1 << 20
	w := newWriter()
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(w.word())
		if w.rand.IntN(12) == 0 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
})

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

// fill creates a session of n events like people's.
func fill(ctx context.Context, log *eventlog.Log, session string, n int) error {
	if err := appendAll(ctx, log, session, people(n), batchLen); err != nil {
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
	jsonl, sqlite *history // with compactions
	uncompacted   *history // jsonl
	store         *store
	shaped        map[shapeSize]*eventlog.Log
	many          map[manySize]*manySessions
}

// history is a log with one long session, and the session's file.
type history struct {
	log  *eventlog.Log
	file string
}

// longSession is the id of the long session.
const longSession = "long"

func (b *bench) longJSONL(ctx context.Context) (*history, error) {
	return b.longSession(ctx, &b.shared.jsonl, people)
}

// longHistory is longJSONL without compactions: all messages are in the history.
func (b *bench) longHistory(ctx context.Context) (*history, error) {
	return b.longSession(ctx, &b.shared.uncompacted, uncompacted)
}

// longSession creates the session unless *h has it.
func (b *bench) longSession(ctx context.Context, h **history, generate func(n int) []event.Event) (*history, error) {
	if *h != nil {
		return *h, nil
	}
	log, dir := b.jsonl(never)
	if err := appendAll(ctx, log, longSession, generate(b.sizes.history), batchLen); err != nil {
		return nil, err
	}
	*h = &history{log: log, file: filepath.Join(dir, longSession+".jsonl")}
	return *h, nil
}

func (b *bench) longSQLite(ctx context.Context) (*history, error) {
	if b.shared.sqlite == nil {
		log, path := b.sqlite(unsynced)
		err := errors.Join(fill(ctx, log, longSession, b.sizes.history), log.Close()) // so that no background work runs during the measurement
		if err != nil {
			return nil, err
		}
		log = b.open(sqlite.New(path, sqlite.Options{NoSync: unsynced}))
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
	events := people(int(sessionSizes[0]))
	for i := range b.sizes.sessions {
		s.sessions = append(s.sessions, fmt.Sprintf("s%05d", i))
		if err := appendAll(ctx, log, s.sessions[i], events, batchLen); err != nil {
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
