package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/projection"
)

// treeList is the list of sessions of a tree that is imported.
type treeList struct {
	heads []treeHead
	place map[string]int // of each session in heads
	read  int            // the number of sessions that were read whole
	links links          // between the sessions that were read whole
}

// next is the session that the stream must have next; nil after the last session, or
// without a list.
func (t *treeList) next() *treeHead {
	if t == nil || t.read == len(t.heads) {
		return nil
	}
	return &t.heads[t.read]
}

// beginTree reads the first line of a tree. A stream can have several trees.
func (m *importer) beginTree(ctx context.Context, text []byte) error {
	if m.tree.next() != nil {
		return m.mismatch(m.tree.next().Session, "another list is in its place")
	}
	if err := m.adopt(ctx); err != nil {
		return err
	}
	var list treeLine
	if err := json.Unmarshal(text, &list, json.RejectUnknownMembers(true)); err != nil {
		if m.last {
			return m.treeError("", m.offset+int64(len(text)), errCut)
		}
		return m.treeError("", m.offset, fmt.Errorf("%w: %w", errMismatch, err))
	}
	m.tree = &treeList{heads: list.Tree, place: map[string]int{}, links: links{}}
	for i, h := range list.Tree {
		if _, twice := m.tree.place[h.Session]; twice {
			return m.mismatch(h.Session, "it is in the list twice")
		}
		if err := event.CheckSessionID(h.Session); err != nil {
			return m.treeError(h.Session, m.offset, fmt.Errorf("%w: %w", errMismatch, err))
		}
		if h.Seq < 1 {
			return m.mismatch(h.Session, fmt.Sprintf("the last event is listed as %d", h.Seq))
		}
		m.tree.place[h.Session] = i
	}
	return nil
}

// treeEvent adds an event of the next session in the list. It stores the session after
// its last event.
func (m *importer) treeEvent(ctx context.Context, e *event.Event) error {
	want := m.tree.next()
	if want == nil {
		return m.mismatch(e.SessionID, "it comes after the last session of the list")
	}
	if e.SessionID != want.Session {
		return m.mismatch(want.Session, fmt.Sprintf("event %d of session %q is in its place", e.Seq, e.SessionID))
	}
	if len(m.events) == 0 {
		m.session = e.SessionID
		if err := m.checkOrder(e); err != nil {
			return err
		}
	}
	m.events, m.lines = append(m.events, *e), append(m.lines, m.number)
	switch {
	case e.Seq < want.Seq:
		return nil
	case e.Seq > want.Seq || e.Hash() != want.Hash:
		return m.mismatch(want.Session, fmt.Sprintf("event %d is not its listed end", e.Seq))
	}
	if err := m.checkLinks(); err != nil {
		return err
	}
	if err := m.adopt(ctx); err != nil {
		return err
	}
	m.tree.read++
	return nil
}

// checkOrder refuses a fork that comes before its parent.
func (m *importer) checkOrder(first *event.Event) error {
	if first.Type.Name() != event.SessionForked {
		return nil
	}
	parent, err := sessiontree.ParentOf(first)
	if err != nil {
		return fmt.Errorf("line %d: %w", m.number, ofSession(m.session, err))
	}
	if i, listed := m.tree.place[parent]; listed && i >= m.tree.read {
		return m.mismatch(m.session, fmt.Sprintf("it comes before its parent %q", parent))
	}
	return nil
}

// checkLinks refuses a session that is below itself.
func (m *importer) checkLinks() error {
	above, err := sessiontree.ParentOf(m.events[0].Effective())
	var runs projection.ChildList
	for i := range m.events {
		if err == nil {
			err = projection.Children().Apply(&runs, m.events[i].Effective())
		}
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", m.number, ofSession(m.session, err))
	}
	var below []string
	for _, r := range runs.Runs {
		if _, listed := m.tree.place[r.SessionID]; listed {
			below = append(below, r.SessionID)
		}
	}
	if err := m.tree.links.add(m.session, above, below); err != nil {
		return m.treeError(m.session, m.offset, err)
	}
	return nil
}

// isCut reports whether the line may be the beginning of a line of a tree.
func (m *importer) isCut() bool { return m.last && m.tree.next() != nil }

// cut is the error of a stream that ends before m.tree does.
func (m *importer) cut() error {
	want := m.tree.next()
	have := "it has none of its events"
	if n := len(m.events); n > 0 {
		have = fmt.Sprintf("it has the events up to %d of %d", m.events[n-1].Seq, want.Seq)
	}
	return m.treeError(want.Session, m.offset, fmt.Errorf("%w: %s", errCut, have))
}

// cutAfter is cut for a stream that ends with a part of a line.
func (m *importer) cutAfter(text []byte) error {
	m.offset += int64(len(text))
	return m.cut()
}

// unread is the error of a stream that could not be read to its end.
func (m *importer) unread(err error) error {
	want := m.tree.next()
	if want == nil {
		return err
	}
	return m.treeError(want.Session, m.offset, fmt.Errorf("%w: %w", errCut, err))
}

// mismatch is the error of a session that differs from the list.
func (m *importer) mismatch(session, reason string) error {
	return m.treeError(session, m.offset, fmt.Errorf("%w: %s", errMismatch, reason))
}

func (m *importer) treeError(session string, offset int64, cause error) error {
	return &TreeError{Session: session, Line: m.number, Offset: offset, Cut: errors.Is(cause, errCut), Cause: cause}
}
