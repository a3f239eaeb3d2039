package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// startProgress makes the progress of a command, if the error output is a terminal. An empty
// verb makes none.
func (a *app) startProgress(verb string) {
	if verb != "" && term.IsTerminal(a.err) && a.getenv("TERM") != "dumb" {
		a.progress = term.NewProgress(a.err, a.now, a.columns(a.err), verb)
	}
}

// steps makes the progress line count sessions. Call step after each of them.
func (a *app) steps(all int) (step func()) {
	var done atomic.Int64
	a.progress.Say(func() string { return thousands(done.Load()) + " of " + count(all, "session") })
	return func() { done.Add(1) }
}

// meteredStore counts the events that a command reads from a store.
type meteredStore struct {
	eventlog.Store
	events, bytes atomic.Int64 // read
	listed        atomic.Int64 // bytes of all sessions of the store; 0 until they are listed
}

// metered counts the reads of the store that the command opens first.
func metered(store eventlog.Store, p *term.Progress) eventlog.Store {
	m := &meteredStore{Store: store}
	if !p.Meter(m.text) {
		return store
	}
	return m
}

// text is the events and bytes read so far; of all bytes, if the command reads all sessions.
func (m *meteredStore) text(whole bool) string {
	events, bytes, all := m.events.Load(), m.bytes.Load(), m.listed.Load()
	switch {
	case events == 0:
		return ""
	case whole && bytes <= all:
		return count(events, "event") + " read, " + size(bytes) + " of " + size(all)
	}
	return count(events, "event") + " read, " + size(bytes)
}

// Unwrap returns the store, for its abilities.
func (m *meteredStore) Unwrap() eventlog.Store { return m.Store }

func (m *meteredStore) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range m.Store.Read(ctx, session, r) {
			if err == nil {
				m.events.Add(1)
				m.bytes.Add(int64(len(e.Line())))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// ReadLines implements eventlog.LineReader. It counts the events that the store leaves out too.
func (m *meteredStore) ReadLines(ctx context.Context, session string, r eventlog.Span, wanted func(line []byte) bool) iter.Seq2[event.Event, error] {
	lines, ok := eventlog.As[eventlog.LineReader](m.Store)
	if !ok {
		return m.Read(ctx, session, r)
	}
	return lines.ReadLines(ctx, session, r, func(line []byte) bool {
		m.events.Add(1)
		m.bytes.Add(int64(len(line)))
		return wanted(line)
	})
}

func (m *meteredStore) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		all := int64(0)
		for info, err := range m.Store.Sessions(ctx) {
			all += info.Bytes
			if !yield(info, err) {
				return
			}
		}
		m.listed.Store(all)
	}
}

// importBar is the progress of an import. Its methods may be called concurrently.
type importBar struct {
	now   func() time.Time
	began time.Time
	files int   // to import
	all   int64 // bytes to import
	width int   // of the terminal in columns; 0 is no limit

	mu     sync.Mutex
	done   int
	read   int64
	events int64
}

func newImportBar(a *app, found *interop.Found) *importBar {
	b := &importBar{now: a.now, began: a.now(), files: len(found.Files()), all: found.Bytes(), width: a.columns(a.err)}
	a.progress.Say(b.line)
	return b
}

// file counts a file.
func (b *importBar) file(row interop.Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.events += int64(row.Events)
}

// bytes counts bytes read.
func (b *importBar) bytes(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += n
}

func (b *importBar) line() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	width := 24
	if b.width > 0 {
		width = max(0, min(width, b.width-60))
	}
	share := 1.0
	if b.all > 0 {
		share = min(float64(b.read)/float64(b.all), 1)
	}
	full := int(share * float64(width))
	rate := int64(float64(b.read) / max(b.now().Sub(b.began).Seconds(), 0.001))
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	return fmt.Sprintf("%s %3.0f%%  %s of %s  %s  %s/s", bar,
		100*share, thousands(b.done), count(b.files, "file"), count(b.events, "event"), size(rate))
}
