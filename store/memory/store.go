// Package memory implements an eventlog.Store in memory, for tests and for sessions
// that end with the process.
//
//	log := eventlog.Open(memory.New())
package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/lease"
	"github.com/convlog/convlog/internal/notify"
)

// Store stores sessions and blobs in memory. It implements the interfaces in the
// assertions below. All methods are safe for concurrent use.
//
// A Store is one handle on its data. Handle and ReadOnly return more handles on the
// same data, as other processes would have. The data lives as long as any handle is
// referenced, closed or open.
type Store struct {
	data     *data
	readOnly bool
	leases   *lease.Table

	closing chan struct{} // closed by Close
	once    sync.Once
}

var (
	_ eventlog.Store      = (*Store)(nil)
	_ eventlog.Blobs      = (*Store)(nil)
	_ eventlog.Cataloger  = (*Store)(nil)
	_ eventlog.Locker     = (*Store)(nil)
	_ eventlog.Eraser     = (*Store)(nil)
	_ eventlog.Identifier = (*Store)(nil)
	_ eventlog.Leaser     = (*Store)(nil)
	_ eventlog.Notifier   = (*Store)(nil)
	_ eventlog.Salvager   = (*Store)(nil)
	_ eventlog.Sweeper    = (*Store)(nil)
	_ eventlog.Syncer     = (*Store)(nil)
	_ eventlog.Versioner  = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return (&data{
		id:       rand.Text(),
		sessions: make(map[string]*lines),
		blobs:    make(map[event.Digest]blob),
		copies:   make(map[string][][]byte),
		catalog:  make(map[string][]byte),
		lookup:   newLookup(),
		lock:     newStoreLock(),
		changes:  notify.New(nil),
	}).handle(false)
}

// Handle returns another handle on the same data.
func (s *Store) Handle() *Store { return s.data.handle(false) }

// ReadOnly returns a read-only handle on the same data. Writes return ErrReadOnly.
func (s *Store) ReadOnly() *Store { return s.data.handle(true) }

// data is the data that all handles share. Lines never change in place, so a reader
// may retain the slice it found.
type data struct {
	id       string
	mu       sync.RWMutex
	sessions map[string]*lines
	blobs    map[event.Digest]blob
	copies   map[string][][]byte // lines that Replace replaced, by path
	catalog  map[string][]byte   // by session
	lookup   lookup
	version  uint64
	erasing  []event.Digest
	lock     *storeLock
	leases   lease.Memory
	changes  *notify.Hub
}

func (d *data) handle(readOnly bool) *Store {
	return &Store{data: d, readOnly: readOnly, leases: d.leases.Table(), closing: make(chan struct{})}
}

// lines are the stored lines of one session. version changes with every write.
type lines struct {
	all     [][]byte
	first   int64     // seq of the first line
	birth   ulid.ULID // id of the first event
	head    event.Head
	version uint64
}

// Append implements eventlog.Store.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, _ bool) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	found, err := s.data.at(session, expect)
	if err != nil || len(events) == 0 {
		return err
	}
	if found == nil {
		found = &lines{first: events[0].Seq, birth: events[0].ID}
		s.data.sessions[session] = found
		s.data.lookup.begin(&events[0])
	}
	s.data.add(session, found, events)
	return nil
}

// Read implements eventlog.Store.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		all, first, err := s.snapshot(ctx, session)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for seq := range seqsOf(r, first, int64(len(all))) {
			e, err := parse(ctx, session, seq, all[seq-first])
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Sessions implements eventlog.Store.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.List(ctx, eventlog.Part{})
}

// rows yields the rows of the sessions that pick yields.
func (s *Store) rows(ctx context.Context, pick func(d *data) iter.Seq[string]) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		s.data.mu.RLock()
		ids := slices.Sorted(pick(s.data))
		s.data.mu.RUnlock()
		for _, id := range ids {
			info, ok, err := s.info(ctx, id)
			if !ok && err == nil {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// info describes a session. ok is false if the session was removed.
func (s *Store) info(ctx context.Context, id string) (info eventlog.SessionInfo, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return info, false, err
	}
	all, first, err := s.snapshot(ctx, id)
	if err != nil {
		return info, false, nil
	}
	info.ID = id
	for _, line := range all {
		info.Bytes += int64(len(line)) + 1
	}
	if info.First, info.Err = parse(ctx, id, first, all[0]); info.Err != nil {
		return info, true, nil
	}
	last := len(all) - 1
	info.Last, info.Err = parse(ctx, id, first+int64(last), all[last])
	return info, true, nil
}

// Close implements eventlog.Store. It closes this handle only, and ends its leases.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	return s.leases.Close()
}

// Rewrite implements eventlog.Eraser.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	found, err := s.data.at(session, expect)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("rewrite %q: %w", session, eventlog.ErrNotFound)
	}
	all := slices.Clone(found.all)
	for i := range replace {
		at := replace[i].Seq - found.first
		if at < 0 || at >= int64(len(all)) {
			return fmt.Errorf("rewrite %q: seq %d: %w", session, replace[i].Seq, eventlog.ErrEventNotFound)
		}
		all[at] = slices.Clone(replace[i].Line())
	}
	found.all = all
	delete(s.data.catalog, session)
	replaced := map[user]bool{}
	for i := range replace {
		replaced[user{session, replace[i].Seq}] = true
	}
	s.data.lookup.drop(func(u user) bool { return replaced[u] })
	for i := range replace {
		s.data.lookup.add(&replace[i])
	}
	s.data.add(session, found, add)
	return nil
}

// SetErasing implements eventlog.Eraser.
func (s *Store) SetErasing(ctx context.Context, digests []event.Digest) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.data.erasing = slices.Clone(digests)
	return nil
}

// Erasing implements eventlog.Eraser.
func (s *Store) Erasing(ctx context.Context) (eventlog.Erasing, error) {
	if err := s.usable(ctx); err != nil {
		return eventlog.Erasing{}, err
	}
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	return eventlog.Erasing{Blobs: slices.Clone(s.data.erasing)}, nil
}

// RemoveSession implements eventlog.Eraser.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	found, err := s.data.at(session, expect)
	if damaged := s.data.sessions[session]; err != nil && expect.IsZero() && damaged != nil && !damaged.end(session) {
		found, err = damaged, nil
	}
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("remove %q: %w", session, eventlog.ErrNotFound)
	}
	delete(s.data.sessions, session)
	delete(s.data.catalog, session)
	s.data.lookup.remove(session)
	s.data.version++
	s.data.changes.Publish(session)
	return nil
}

// StoreID implements eventlog.Identifier. All handles on the data have the same id.
func (s *Store) StoreID(ctx context.Context) (string, error) {
	if err := s.usable(ctx); err != nil {
		return "", err
	}
	return s.data.id, nil
}

// Changes implements eventlog.Notifier.
func (s *Store) Changes(ctx context.Context) iter.Seq2[string, error] {
	return s.data.changes.Changes(ctx, s.closing)
}

// Version implements eventlog.Versioner.
func (s *Store) Version(ctx context.Context, session string) (uint64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	found, ok := s.data.sessions[session]
	if !ok {
		return 0, fmt.Errorf("version of %q: %w", session, eventlog.ErrNotFound)
	}
	return found.version, nil
}

// Sync implements eventlog.Syncer. It has nothing to write.
func (s *Store) Sync(ctx context.Context, session string) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	_, err := s.Version(ctx, session)
	return err
}

// usable returns an error if the handle is closed or ctx has ended.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closing:
		return eventlog.ErrClosed
	default:
		return context.Cause(ctx)
	}
}

func (s *Store) writable(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return eventlog.ErrReadOnly
	}
	return nil
}

// snapshot returns the session's current lines and the seq of the first one.
func (s *Store) snapshot(ctx context.Context, session string) (all [][]byte, first int64, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, 0, err
	}
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	found, ok := s.data.sessions[session]
	if !ok {
		return nil, 0, fmt.Errorf("read %q: %w", session, eventlog.ErrNotFound)
	}
	return found.all, found.first, nil
}

// at finds a session with head expect. It returns nil if the session is missing and
// expect is zero.
func (d *data) at(session string, expect event.Head) (*lines, error) {
	found := d.sessions[session]
	var actual event.Head
	if found != nil {
		actual = found.head
	}
	if actual != expect {
		return nil, &eventlog.ConflictError{Session: session, Expected: expect, Actual: actual}
	}
	return found, nil
}

// end reports whether the newest line is readable.
func (l *lines) end(session string) bool {
	_, err := event.Parse(l.all[len(l.all)-1], session)
	return err == nil
}

// add appends copies of the events' lines, and publishes the change.
func (d *data) add(session string, l *lines, events []event.Event) {
	for i := range events {
		l.all = append(l.all, slices.Clone(events[i].Line()))
		l.head = events[i].Head()
		d.lookup.add(&events[i])
	}
	d.version++
	l.version = d.version
	d.changes.Publish(session)
}

// OrdersAppends implements eventlog.Syncer: each session is synced by itself.
func (s *Store) OrdersAppends() bool { return false }
