package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// group is the events of one append: all are stored, or none.
type group struct {
	session string
	ids     []ulid.ULID
	parent  string // the parent session, in a fork's first append

	acknowledged bool
	durable      bool
	first        int64    // seq, once acknowledged
	lines        [][]byte // the stored lines
}

// model records completed actions and actions in progress.
type model struct {
	mu       sync.Mutex
	groups   map[ulid.ULID]group // by their first id
	inFlight []*action
	secrets  map[ulid.ULID]string // a unique text in each event's content
	erased   []string             // secrets that no file may contain
	lossy    bool                 // unsynced appends were lost: actions that expected them fail
}

func newModel() *model {
	return &model{groups: map[ulid.ULID]group{}, secrets: map[ulid.ULID]string{}}
}

func (m *model) clone() *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &model{groups: maps.Clone(m.groups), inFlight: slices.Clone(m.inFlight), secrets: maps.Clone(m.secrets),
		erased: slices.Clone(m.erased), lossy: m.lossy}
}

// begin records that an action has started; its outcome is open.
func (m *model) begin(a *action) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.inFlight, a) {
		m.inFlight = append(m.inFlight, a)
	}
	for _, g := range a.groups {
		if !m.groups[g.ids[0]].acknowledged {
			m.groups[g.ids[0]] = g
		}
	}
	maps.Copy(m.secrets, a.secrets)
}

// forget drops an action that left nothing.
func (m *model) forget(a *action) {
	m.inFlight = slices.DeleteFunc(m.inFlight, func(other *action) bool { return other == a })
	for _, g := range a.groups {
		delete(m.groups, g.ids[0])
	}
}

// abandon drops an action that can no longer succeed. Its stored events stay.
func (m *model) abandon(ctx context.Context, log *eventlog.Log, a *action) error {
	for _, g := range a.groups {
		events, err := readOwn(ctx, log, g.session)
		if err != nil {
			return err
		}
		m.mu.Lock()
		if slices.ContainsFunc(events, func(e event.Event) bool { return e.ID == g.ids[0] }) {
			err = m.acknowledge(g, events, false)
		} else {
			delete(m.groups, g.ids[0])
		}
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
	m.inFlight = slices.DeleteFunc(m.inFlight, func(other *action) bool { return other == a })
	return nil
}

// finish records that an action succeeded, and reads the places of its events. Each of
// its groups must be stored once.
func (m *model) finish(ctx context.Context, log *eventlog.Log, a *action, durable bool) error {
	found := map[string][]event.Event{}
	for _, session := range m.touched(a) {
		events, err := readOwn(ctx, log, session)
		if err != nil {
			return fmt.Errorf("after %s: %w", a.what, err)
		}
		found[session] = events
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range a.groups {
		if err := m.acknowledge(g, found[g.session], durable); err != nil {
			return fmt.Errorf("after %s: %w", a.what, err)
		}
	}
	if a.removes != "" {
		maps.DeleteFunc(m.groups, func(_ ulid.ULID, g group) bool { return g.session == a.removes })
	}
	if a.erases {
		m.applyErasure(found)
	}
	m.inFlight = slices.DeleteFunc(m.inFlight, func(other *action) bool { return other == a })
	return nil
}

// touched returns the sessions that an action may have changed.
func (m *model) touched(a *action) []string {
	if a.erases {
		return m.sessions()
	}
	names := map[string]bool{}
	for _, g := range a.groups {
		names[g.session] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (m *model) sessions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := map[string]bool{}
	for _, g := range m.groups {
		names[g.session] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// acknowledge records the place of a group.
func (m *model) acknowledge(g group, events []event.Event, durable bool) error {
	at := slices.IndexFunc(events, func(e event.Event) bool { return e.ID == g.ids[0] })
	if at < 0 || at+len(g.ids) > len(events) {
		return fmt.Errorf("session %q: an acknowledged append of %d events is missing", g.session, len(g.ids))
	}
	durable = durable || m.groups[g.ids[0]].durable
	g.acknowledged, g.durable, g.first, g.lines = true, durable, events[at].Seq, nil
	for _, e := range events[at : at+len(g.ids)] {
		g.lines = append(g.lines, e.Line())
	}
	m.groups[g.ids[0]] = g
	if durable { // a sync covers the whole file
		for id, other := range m.groups {
			if other.session == g.session && other.acknowledged && other.first < g.first {
				other.durable = true
				m.groups[id] = other
			}
		}
	}
	return nil
}

// applyErasure updates the model after a redaction: changed lines, the redaction
// events, and that the changed sessions are durable.
func (m *model) applyErasure(found map[string][]event.Event) {
	for session, events := range found {
		rewritten := false
		for i := range events {
			e := &events[i]
			if _, known := m.groups[e.ID]; !known && e.Type == event.Redacted {
				rewritten = true
				m.groups[e.ID] = group{session: session, ids: []ulid.ULID{e.ID}, acknowledged: true, first: e.Seq, lines: [][]byte{e.Line()}}
			}
			if secret := m.secrets[e.ID]; e.Redacted() && secret != "" && !slices.Contains(m.erased, secret) {
				m.erased = append(m.erased, secret)
			}
		}
		if rewritten {
			m.reloadLines(session, events)
		}
	}
}

func (m *model) reloadLines(session string, events []event.Event) {
	for id, g := range m.groups {
		if g.session != session || !g.acknowledged {
			continue
		}
		at := slices.IndexFunc(events, func(e event.Event) bool { return e.ID == id })
		g.durable, g.lines = true, nil
		for _, e := range events[at : at+len(g.ids)] {
			g.lines = append(g.lines, e.Line())
		}
		m.groups[id] = g
	}
}

// acceptLosses drops the groups that a crash lost.
func (m *model) acceptLosses(ctx context.Context, log *eventlog.Log) error {
	there := map[ulid.ULID]bool{}
	for _, session := range m.sessions() {
		events, err := readOwn(ctx, log, session)
		if err != nil {
			return err
		}
		for _, e := range events {
			there[e.ID] = true
		}
	}
	maps.DeleteFunc(m.groups, func(id ulid.ULID, g group) bool { return g.acknowledged && !there[id] })
	for _, a := range m.inFlight { // these actions may store them again
		for _, g := range a.groups {
			if _, known := m.groups[g.ids[0]]; !known {
				m.groups[g.ids[0]] = g
			}
		}
	}
	m.lossy = true
	return nil
}

// readOwn reads a session's own events; none if it does not exist.
func readOwn(ctx context.Context, log *eventlog.Log, session string) (events []event.Event, err error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", session, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// compare checks that a log matches the model. With lossy, appends that were
// acknowledged without a sync may be missing.
func (m *model) compare(ctx context.Context, log *eventlog.Log, lossy bool) error {
	listed, err := listSessions(ctx, log)
	if err != nil {
		return err
	}
	for _, session := range m.sessions() {
		events, err := readOwn(ctx, log, session)
		if err != nil {
			return err
		}
		if listed[session] != (len(events) > 0) {
			return fmt.Errorf("session %q of %d events: listed is %v", session, len(events), listed[session])
		}
		delete(listed, session)
		if err := errors.Join(m.compareSession(session, events, lossy), compareRanges(ctx, log, session, events)); err != nil {
			return fmt.Errorf("session %q: %w", session, err)
		}
	}
	delete(listed, "convlog:store") // the notes of erasures
	for session := range listed {
		return fmt.Errorf("session %q should not exist", session)
	}
	return nil
}

func listSessions(ctx context.Context, log *eventlog.Log) (map[string]bool, error) {
	listed := map[string]bool{}
	for info, err := range log.Sessions(ctx) {
		if errors.Is(info.Err, eventlog.ErrCorrupt) {
			continue // a torn tail only: otherwise a read of its events fails
		}
		if err := errors.Join(err, info.Err); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		listed[info.ID] = true
	}
	return listed, nil
}

func (m *model) compareSession(session string, events []event.Event, lossy bool) error {
	seen := map[ulid.ULID]bool{}
	noted := false
	for i := 0; i < len(events); {
		e := &events[i]
		g, known := m.groups[e.ID]
		switch {
		case known && seen[e.ID]:
			return fmt.Errorf("event %d: an append is stored twice", e.Seq)
		case known:
			if err := m.compareGroup(g, events[i:]); err != nil {
				return err
			}
			seen[e.ID] = true
			i += len(g.ids)
		case m.erasing() && e.Type == event.Redacted && !noted:
			noted = true
			i++
		default:
			return fmt.Errorf("event %d, a %s, was not appended, or is part of an append", e.Seq, e.Type)
		}
	}
	return m.compareMissing(session, events, seen, lossy)
}

// compareGroup checks that events begin with a group, unchanged.
func (m *model) compareGroup(g group, events []event.Event) error {
	for i, id := range g.ids {
		if i >= len(events) || events[i].ID != id {
			return fmt.Errorf("event %d: %d of %d events of an append", events[0].Seq, i, len(g.ids))
		}
		if !g.acknowledged {
			continue
		}
		e := &events[i]
		stored := bytes.Equal(e.Line(), g.lines[i]) || e.Redacted() && m.erasing()
		if e.Seq != g.first+int64(i) || !stored {
			return fmt.Errorf("event %d differs from the acknowledged event %d:\n%s\n%s", e.Seq, g.first+int64(i), e.Line(), g.lines[i])
		}
	}
	return nil
}

// compareMissing checks that the model allows each missing group to be lost.
func (m *model) compareMissing(session string, events []event.Event, seen map[ulid.ULID]bool, lossy bool) error {
	if len(events) == 0 && m.removing(session) {
		return nil
	}
	last := int64(0)
	if len(events) > 0 {
		last = events[len(events)-1].Seq
	}
	for id, g := range m.groups {
		if g.session != session || seen[id] || !g.acknowledged {
			continue
		}
		if g.durable || !lossy || g.first <= last {
			return fmt.Errorf("the acknowledged event %d is lost: the session ends at %d", g.first, last)
		}
	}
	return nil
}

func (m *model) erasing() bool {
	return slices.ContainsFunc(m.inFlight, func(a *action) bool { return a.erases })
}

func (m *model) removing(session string) bool {
	return slices.ContainsFunc(m.inFlight, func(a *action) bool { return a.removes == session })
}

// compareRanges checks that reads in each direction and from several places yield the
// same events.
func compareRanges(ctx context.Context, log *eventlog.Log, session string, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	first, last := events[0].Seq, events[len(events)-1].Seq
	middle := (first + last) / 2
	reversed := slices.Clone(events)
	slices.Reverse(reversed)
	for name, side := range map[string]struct {
		r    eventlog.Range
		want []event.Event
	}{
		"backward":                 {eventlog.All().Own().Backward(), reversed},
		"the last three":           {eventlog.Last(3).Own(), events[max(0, len(events)-3):]},
		"from the middle":          {eventlog.From(middle).Own(), events[middle-first:]},
		"from the middle backward": {eventlog.Between(0, middle).Own().Backward(), reversed[last-middle:]},
	} {
		n := 0
		for e, err := range log.Read(ctx, session, side.r) {
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if n >= len(side.want) || !bytes.Equal(e.Line(), side.want[n].Line()) {
				return fmt.Errorf("read %s: event %d differs from a full read, which ends at %d", name, e.Seq, last)
			}
			n++
		}
		if n != len(side.want) {
			return fmt.Errorf("read %s: %d events, want %d", name, n, len(side.want))
		}
	}
	return nil
}
