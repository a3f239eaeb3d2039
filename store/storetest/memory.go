package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// Memory is a Store that keeps everything in memory: the reference that the
// suite itself is tested with, and a store for tests of the rooms above. It
// has every optional ability. It may be used concurrently.
//
// A Memory is one handle on its data. Handle and ReadOnly give more of them,
// as other processes would have them; the data lives as long as one of them is
// referred to, whether or not they were closed.
type Memory struct {
	data     *memoryData
	readOnly bool

	mu     sync.RWMutex
	closed bool
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{data: &memoryData{
		sessions: make(map[string]*memorySession),
		blobs:    make(map[eventlog.Digest]memoryBlob),
		copies:   make(map[string][][]byte),
		lock:     newMemoryLock(),
	}}
}

// Handle gives another handle on the same data.
func (m *Memory) Handle() *Memory { return &Memory{data: m.data} }

// ReadOnly gives another handle on the same data that refuses to write.
func (m *Memory) ReadOnly() *Memory { return &Memory{data: m.data, readOnly: true} }

// memoryData is what all handles share. Lines are never changed in place, so a
// reader may keep the slice it found.
type memoryData struct {
	mu       sync.RWMutex
	sessions map[string]*memorySession
	blobs    map[eventlog.Digest]memoryBlob
	copies   map[string][][]byte // what Replace kept
	version  uint64
	lock     *memoryLock
}

// memorySession is one session: its lines, the seq of the first, its head, and
// the version of its last change.
type memorySession struct {
	lines   [][]byte
	first   int64
	head    eventlog.Head
	version uint64
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, _ bool) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	s, err := m.data.at(session, expect)
	if err != nil || len(events) == 0 {
		return err
	}
	if s == nil {
		s = &memorySession{first: events[0].Seq}
		m.data.sessions[session] = s
	}
	m.data.add(s, events)
	return nil
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		lines, first, err := m.snapshot(ctx, session)
		if err != nil {
			yield(eventlog.Event{}, err)
			return
		}
		for seq := range seqsOf(r, first, int64(len(lines))) {
			e, err := parse(ctx, session, seq, lines[seq-first])
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Sessions implements Store.
func (m *Memory) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		if err := m.usable(ctx); err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		m.data.mu.RLock()
		ids := slices.Sorted(maps.Keys(m.data.sessions))
		m.data.mu.RUnlock()
		for _, id := range ids {
			info, ok, err := m.info(ctx, id)
			if !ok && err == nil {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// info describes a session; ok is false if it is gone.
func (m *Memory) info(ctx context.Context, id string) (info eventlog.SessionInfo, ok bool, err error) {
	if err := m.usable(ctx); err != nil {
		return info, false, err
	}
	lines, first, err := m.snapshot(ctx, id)
	if err != nil {
		return info, false, nil
	}
	info.ID = id
	for _, line := range lines {
		info.Bytes += int64(len(line)) + 1
	}
	if info.First, info.Err = parse(ctx, id, first, lines[0]); info.Err != nil {
		return info, true, nil
	}
	last := len(lines) - 1
	info.Last, info.Err = parse(ctx, id, first+int64(last), lines[last])
	return info, true, nil
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Rewrite implements Rewriter.
func (m *Memory) Rewrite(ctx context.Context, session string, expect eventlog.Head, replace, add []eventlog.Event) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	s, err := m.data.at(session, expect)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("rewrite %q: %w", session, eventlog.ErrNotFound)
	}
	lines := slices.Clone(s.lines)
	for i := range replace {
		at := replace[i].Seq - s.first
		if at < 0 || at >= int64(len(lines)) {
			return fmt.Errorf("rewrite %q: seq %d: %w", session, replace[i].Seq, eventlog.ErrEventNotFound)
		}
		lines[at] = slices.Clone(replace[i].Line())
	}
	s.lines = lines
	m.data.add(s, add)
	return nil
}

// RemoveSession implements Remover.
func (m *Memory) RemoveSession(ctx context.Context, session string, expect eventlog.Head) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	s, err := m.data.at(session, expect)
	if damaged := m.data.sessions[session]; err != nil && expect.IsZero() && damaged != nil && !damaged.ends(session) {
		s, err = damaged, nil
	}
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("remove %q: %w", session, eventlog.ErrNotFound)
	}
	delete(m.data.sessions, session)
	m.data.version++
	return nil
}

// Version implements Versioner.
func (m *Memory) Version(ctx context.Context, session string) (uint64, error) {
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	s, ok := m.data.sessions[session]
	if !ok {
		return 0, fmt.Errorf("version of %q: %w", session, eventlog.ErrNotFound)
	}
	return s.version, nil
}

// Sync implements Syncer: there is nothing that could be lost.
func (m *Memory) Sync(ctx context.Context, session string) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	_, err := m.Version(ctx, session)
	return err
}

// usable refuses a closed handle and an ended context.
func (m *Memory) usable(ctx context.Context) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return eventlog.ErrClosed
	}
	return context.Cause(ctx)
}

func (m *Memory) writable(ctx context.Context) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	if m.readOnly {
		return eventlog.ErrReadOnly
	}
	return nil
}

// snapshot is the session as it is now.
func (m *Memory) snapshot(ctx context.Context, session string) (lines [][]byte, first int64, err error) {
	if err := m.usable(ctx); err != nil {
		return nil, 0, err
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	s, ok := m.data.sessions[session]
	if !ok {
		return nil, 0, fmt.Errorf("read %q: %w", session, eventlog.ErrNotFound)
	}
	return s.lines, s.first, nil
}

// at finds a session whose head is expect; nil and no error is a session that
// is absent, as expected.
func (d *memoryData) at(session string, expect eventlog.Head) (*memorySession, error) {
	s := d.sessions[session]
	var actual eventlog.Head
	if s != nil {
		actual = s.head
	}
	if actual != expect {
		return nil, &eventlog.ConflictError{Session: session, Expected: expect, Actual: actual}
	}
	return s, nil
}

// ends reports whether the newest line can be read.
func (s *memorySession) ends(session string) bool {
	_, err := eventlog.ParseLine(s.lines[len(s.lines)-1], session)
	return err == nil
}

// add appends copies of the events' lines.
func (d *memoryData) add(s *memorySession, events []eventlog.Event) {
	for i := range events {
		s.lines = append(s.lines, slices.Clone(events[i].Line()))
		s.head = events[i].Head()
	}
	d.version++
	s.version = d.version
}

// parse reads a stored line, honouring ctx.
func parse(ctx context.Context, session string, seq int64, line []byte) (eventlog.Event, error) {
	if err := context.Cause(ctx); err != nil {
		return eventlog.Event{}, err
	}
	e, err := eventlog.ParseLine(line, session)
	if err == nil && e.Seq != seq {
		err = fmt.Errorf("found the line of seq %d", e.Seq)
	}
	if errors.Is(err, eventlog.ErrVersion) {
		return eventlog.Event{}, fmt.Errorf("session %q, seq %d: %w", session, seq, err)
	}
	if err != nil {
		return eventlog.Event{}, &eventlog.CorruptError{Session: session, Offset: -1, Seq: seq, Cause: err}
	}
	return e, nil
}

// seqsOf yields the seqs that r selects from count events beginning at first.
func seqsOf(r eventlog.Span, first, count int64) iter.Seq[int64] {
	from, to := max(r.From, first), first+count-1
	if r.To > 0 {
		to = min(to, r.To)
	}
	return func(yield func(int64) bool) {
		n := to - from + 1
		if r.Limit > 0 {
			n = min(n, int64(r.Limit))
		}
		for i := range max(n, 0) {
			seq := from + i
			if r.Backward {
				seq = to - i
			}
			if !yield(seq) {
				return
			}
		}
	}
}
