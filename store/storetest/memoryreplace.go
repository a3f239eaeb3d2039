package storetest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// Replace implements Replacer. The copies are in memory, too: Copy reads them.
func (m *Memory) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[eventlog.Event, error]) (kept string, err error) {
	if err := m.writable(ctx); err != nil {
		return "", err
	}
	if _, err := m.Version(ctx, session); err != nil {
		return "", err
	}
	var all []eventlog.Event
	for e, err := range events {
		if err != nil {
			return "", fmt.Errorf("replace %q: %w", session, err)
		}
		all = append(all, e)
	}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	s, ok := m.data.sessions[session]
	if !ok || s.version != at {
		return "", &eventlog.ConflictError{Session: session}
	}
	kept = fmt.Sprintf("memory:%d", len(m.data.copies)+1)
	m.data.copies[kept] = s.lines
	s.lines, s.first = nil, all[0].Seq
	m.data.add(s, all)
	return kept, nil
}

// Copy gives the lines that Replace kept under a path.
func (m *Memory) Copy(kept string) [][]byte {
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	return slices.Clone(m.data.copies[kept])
}

// Damage changes what is stored of a session, as no writer would.
func (m *Memory) Damage(session string, edit func(lines []string) []string) error {
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	s, ok := m.data.sessions[session]
	if !ok {
		return fmt.Errorf("damage %q: %w", session, eventlog.ErrNotFound)
	}
	var lines []string
	for _, line := range s.lines {
		lines = append(lines, string(line)+"\n")
	}
	s.lines = nil
	for _, line := range edit(lines) {
		s.lines = append(s.lines, []byte(line[:max(len(line)-1, 0)]))
	}
	if len(s.lines) == 0 {
		delete(m.data.sessions, session)
	} else if last, err := eventlog.ParseLine(s.lines[len(s.lines)-1], session); err == nil {
		s.head = last.Head()
	}
	m.data.version++
	s.version = m.data.version
	return nil
}
