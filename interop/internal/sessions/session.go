// Package sessions appends imported events to sessions of a log. It finds the events that a
// session has already, so that a second import adds nothing.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/written"
)

// A batch has about this many events or bytes of data. An import has at most two
// batches in memory: it fills one while it appends the other.
const (
	batch      = 2048
	batchBytes = 1 << 20
)

// Session appends imported events to one session of a log, in batches. It finds the
// events that the session has already. One goroutine uses it. The caller ends with
// Flush or Drop, and then calls Written.
//
// An event has its seq before it is written, because each batch expects the head
// after the batch before it. If another writer appends in between, the batch fails
// with a conflict, and the caller can run the import again.
type Session struct {
	ID string
	// Format is the format that the session was imported from. It is empty for a new
	// session and for a session that was not imported.
	Format string

	// Erased says that the session's start or an update of it is redacted. Then an
	// import must not bring titles or settings back.
	Erased bool

	// LacksBeginning says that an import left out the beginning of the session, which was
	// copied from a session that was removed.
	LacksBeginning bool

	// Begun says that the log wrote the beginning of the program's file: the session is a
	// fork, and its records have other ids than the events before it.
	Begun bool
	// Records are the seqs of the events that the log wrote to the program's file, by the ids
	// of the records.
	Records map[string]int64

	// CopiedFrom are the sessions that the beginning of the session is copied from, if the
	// session has the copies as events of its own. It is empty and not nil if the format does
	// not name them. Set it before MarkStart.
	CopiedFrom []string

	// IsMessage reports whether a raw event is of a record that should have become a
	// message. Set it before the first Add; nil is none.
	IsMessage func(event.Type) bool

	// Program is the format, if its program copies records with their ids into the files
	// of other sessions. Then Elsewhere and Fork find the copies. Set it before the first
	// Add; it is empty for other formats.
	Program string
	// ByContent says that Elsewhere finds the copies by the digests of records.
	ByContent bool
	// KnowsErased says that the caller finds the copies of erased records of other sessions:
	// Add does not look for them.
	KnowsErased bool
	// Beside reports whether the file has records of another session too; nil is no.
	Beside func(session string) bool

	log      *eventlog.Log
	head     event.Head
	reading  reading
	index    index
	erasures erasures
	pending  [][]event.Event // appends, each with the events of one record
	count    int             // of pending events
	bytes    int             // of their data
	written  int
	file     *importrun.File
	removed  bool // from the log: what is added is left out
	isNew    bool // the log did not have the session
	line     bool // see OpenLine
	owners   *owners
	// hasOwn says that the newest message of the session in the log is its own, and not
	// copied from another session. newest is the time of the newest message.
	hasOwn  bool
	newest  time.Time
	running *batchAppend    // the batch that is being appended; nil if none is
	spare   [][]event.Event // room for pending appends
	failed  error           // of a batch; the next call returns it
}

// batchAppend is a batch that is being appended.
type batchAppend struct {
	appends [][]event.Event
	count   int // of events
	done    chan struct{}
	// Set when done is closed:
	head  event.Head
	fresh bool // this import stored the events
	err   error
}

// Open opens a session of the log, or prepares a new one. It calls each with
// every event of the session, in order. each must not keep the events.
func Open(ctx context.Context, log *eventlog.Log, id string, each func(*event.Event) error) (*Session, error) {
	return open(ctx, log, id, false, each)
}

// OpenLine is Open for a caller that finds the events of its records itself, and whose
// records have no ids: Find, FindOwn and FindAfter find nothing. The session needs the less
// memory. If each returns an error, OpenLine returns it.
func OpenLine(ctx context.Context, log *eventlog.Log, id string, each func(*event.Event) error) (*Session, error) {
	return open(ctx, log, id, true, each)
}

func open(ctx context.Context, log *eventlog.Log, id string, line bool, each func(*event.Event) error) (*Session, error) {
	s := &Session{line: line, ID: id, log: log, index: newIndex(), reading: newReading(), file: importrun.FileOf(ctx), owners: ownersOf(ctx, log)}
	s.erasures.allowed = s.file != nil && s.file.EvenErased
	var from, to time.Time
	for e, err := range log.Read(ctx, id, eventlog.All()) {
		if errors.Is(err, eventlog.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", id, err)
		}
		if err := s.restore(&e, each); err != nil {
			return nil, fmt.Errorf("read session %q: event %d: %w", id, e.Seq, err)
		}
		if to = e.Timestamp; from.IsZero() && e.SessionID == id {
			from = to
		}
	}
	if s.isNew = s.head.IsZero(); s.isNew {
		var err error
		if s.removed, err = s.isRemoved(ctx, id); err != nil {
			return nil, err
		}
	}
	if s.isNew && !s.erasures.allowed {
		var err error
		if s.erasures.twins, err = s.twinsOf(ctx); err != nil {
			return nil, err
		}
	}
	s.owners.open(s, from, to)
	if n := len(s.index.sessions); n == 0 || s.index.sessions[n-1] != id {
		s.index.sessions = append(s.index.sessions, id)
	}
	return s, nil
}

// restore indexes an event of the log.
func (s *Session) restore(e *event.Event, each func(*event.Event) error) error {
	s.head = e.Head()
	if s.line {
		s.index.addSession(e)
	} else if err := s.index.add(e); err != nil {
		return err
	}
	if err := s.reading.note(e, true, nil); err != nil {
		return err
	}
	switch e.Type.Name() {
	case event.SessionForked:
		s.hasOwn = false
		if begun, ok := written.Of(e); ok {
			s.Format, s.Begun = begun.Format, true
			if e.SessionID == s.ID {
				s.Records = begun.Records(s.ID)
			}
		}
	case event.MessageAdded:
		s.hasOwn, s.newest = !e.Inherited(), later(s.newest, e.Timestamp)
	case event.SessionStarted:
		start, err := event.DecodeKept[event.Session](e)
		if err == nil {
			s.Format = start.Source.Format
		}
		_, s.LacksBeginning = e.MetadataValue(leftOut)
		if e.SessionID == s.ID {
			s.CopiedFrom = copiedFrom(e)
		}
		s.Erased = s.Erased || e.Redacted()
	case event.SessionUpdated:
		s.Erased = s.Erased || e.Redacted()
	}
	return each(e)
}

// From reports whether records of one of the formats may be added. They may if the
// session is new, or was imported from one of the formats.
func (s *Session) From(formats ...string) bool {
	return s.New() || slices.Contains(formats, s.Format)
}

// New reports whether the session has no events, written or added.
func (s *Session) New() bool { return s.Seq() == 0 }

// Seq is the seq of the newest event, written or added.
func (s *Session) Seq() int64 {
	seq := s.head.Seq + int64(s.count)
	if s.running != nil {
		seq += int64(s.running.count)
	}
	return seq
}

// Match is the event of a record.
type Match struct {
	Seq int64 // 0 if the session does not have the record
	// Withheld says that the event is redacted: the import must store nothing of the
	// record.
	Withheld bool
}

// Find finds the event of the next record of a file, before anything of the record is
// stored. The first that applies counts:
//
//  1. The event with the record's own id. If such an event is redacted, an event with
//     another digest is this one too.
//  2. The next event with the digest that no record of the file has found.
//  3. The first redacted event of the shape, after the event of the record before, that
//     no record of the file has found.
//
// Where 3 finds an event before 2 does, the records are in this order in the file, and 3
// counts. shape is called only if the session has redacted events; nil excludes 3.
func (s *Session) Find(k Key, shape func() Shape) Match { return s.index.find(k, shape) }

// FindOwn finds the first event with an own id, however often.
func (s *Session) FindOwn(own string, part int) Match {
	return s.index.own(Key{Own: own, Part: part})
}

// FindAfter is Find for a record that follows the event at seq.
func (s *Session) FindAfter(seq int64, k Key, shape func() Shape) Match {
	s.index.last = seq
	return s.index.find(k, shape)
}

// Skip notes that a record of the file has found the event at seq.
func (s *Session) Skip(seq int64) {
	s.index.matched.add(seq)
	s.index.last = seq
}

// SkipInherited makes Find find only events of the session itself, not of its ancestors.
func (s *Session) SkipInherited(first int64) { s.index.first = first }

// NextID is the id that the next event gets from Add.
func (s *Session) NextID(k Key, at time.Time) ulid.ULID {
	if !Drawn(k.Own) {
		return seqPlace(s.ID, s.Seq()+1, k.Part).id(at)
	}
	variant := 0
	for {
		p := ownPlace(s.ID, k.Own, variant, k.Part)
		if _, ok := s.index.places[p]; !ok {
			return p.id(at)
		}
		variant++
	}
}

// Add queues an event under a key and returns the event's seq. at becomes the
// timestamp. The caller adds all events of a record before it calls Flush.
func (s *Session) Add(k Key, at time.Time, e event.Event) int64 {
	e.ID, e.Timestamp = s.NextID(k, at), stamp(at)
	s.index.diverges(&k)
	if s.KnowsErased {
		s.erasures.twins = nil
	}
	s.queue(e)
	s.note(&k, &e)
	s.erasures.note(s.ID, &k, &e)
	return s.added(k, e.ID)
}

// Join queues an event in the same append as the event before it, so that the log
// has both or neither. The caller must not call Flush in between.
func (s *Session) Join(k Key, at time.Time, e event.Event) int64 {
	e.ID, e.Timestamp = s.NextID(k, at), stamp(at)
	last := &s.pending[len(s.pending)-1]
	*last = append(*last, e)
	s.count++
	s.bytes += len(e.Data)
	s.note(&k, &e)
	return s.added(k, e.ID)
}

// note checks an event that the import adds, and makes it known to the other sessions of the
// import.
func (s *Session) note(k *Key, e *event.Event) {
	if s.Program != "" {
		s.owners.note(s, k, e)
	}
	if e.Type == event.MessageAdded {
		s.newest = later(s.newest, e.Timestamp)
	}
	if err := s.reading.note(e, false, s.IsMessage); err != nil {
		s.failed = errors.Join(s.failed, err)
	}
}

func (s *Session) added(k Key, id ulid.ULID) int64 {
	seq := s.Seq()
	if s.line {
		return seq
	}
	s.index.places[placeOf(id)] = seq32(seq)
	s.index.say(k.Digest, seq)
	s.index.matched.add(seq)
	if k.Part == 0 {
		s.index.last = seq
	}
	return seq
}

// queue adds e to the pending appends: to the last append if that is incomplete,
// else as an append of its own.
func (s *Session) queue(e event.Event) {
	s.count++
	s.bytes += len(e.Data)
	if n := len(s.pending); n > 0 && incomplete(s.pending[n-1]) {
		s.pending[n-1] = append(s.pending[n-1], e)
		return
	}
	s.pending = append(s.pending, []event.Event{e})
}

// incomplete reports whether an append ends with an event that prepares the next
// event.
func incomplete(events []event.Event) bool {
	last := events[len(events)-1].Type
	return last == event.SessionStarted || last == event.HeadMoved
}

// Full reports whether the batch is full, so that the caller should call FlushAsync.
func (s *Session) Full() bool { return s.count >= batch || s.bytes >= batchBytes }

// Written waits for the running append and returns the number of appended events.
func (s *Session) Written() int {
	s.failed = errors.Join(s.failed, s.wait())
	return s.written
}

// Drop discards the events that were added since the last flush.
func (s *Session) Drop() {
	s.failed = errors.Join(s.failed, s.wait())
	s.forget(s.pending)
	clear(s.pending)
	s.pending, s.count, s.bytes = s.pending[:0], 0, 0
}

// Flush appends the added events and waits for the append. It also returns the error
// of an earlier FlushAsync. After an error, all events that are not appended are
// discarded.
func (s *Session) Flush(ctx context.Context) error {
	if err := s.FlushAsync(ctx); err != nil {
		return err
	}
	return s.wait()
}

// FlushAsync starts to append the added events, and the caller can add more
// meanwhile. It waits for the batch before, and returns that batch's error.
func (s *Session) FlushAsync(ctx context.Context) error {
	err := errors.Join(s.failed, s.wait())
	s.failed = nil
	if err == nil && len(s.pending) > 0 {
		if err = errors.Join(s.reading.check(s.ID), s.checkErased()); err != nil {
			s.file.AddLost(recordsOf(s.pending))
			s.Drop()
		}
	}
	if err != nil || len(s.pending) == 0 {
		return err
	}
	if s.head.IsZero() && !s.removed {
		if s.removed, err = s.belowRemoved(ctx); err != nil {
			return err
		}
	}
	if s.removed {
		s.leaveOut()
		return nil
	}
	w := &batchAppend{appends: s.pending, count: s.count, done: make(chan struct{})}
	s.running, s.pending, s.spare, s.count, s.bytes = w, s.spare, nil, 0, 0
	head := s.head
	go func() {
		defer close(w.done)
		w.head, w.fresh, w.err = engine.Of(s.log).AppendEach(ctx, s.ID, head, w.appends...)
	}()
	return nil
}

// wait waits for the running append. If the append failed, wait also discards the
// events that were added after it.
func (s *Session) wait() error {
	w := s.running
	if w == nil {
		return nil
	}
	<-w.done
	s.running = nil
	if w.err != nil {
		s.file.AddLost(recordsOf(w.appends))
		s.file.AddLost(recordsOf(s.pending))
		s.forget(w.appends)
		s.Drop()
		return fmt.Errorf("import into session %q: %w", s.ID, w.err)
	}
	s.head = w.head
	if w.fresh {
		s.written += w.count
	} else {
		s.file.AddPresent(recordsOf(w.appends))
	}
	clear(w.appends)
	s.spare = w.appends[:0]
	return nil
}

func (s *Session) forget(appends [][]event.Event) {
	for _, events := range slices.Backward(appends) {
		for i := range slices.Backward(events) {
			s.index.forget(&events[i])
			if s.Program != "" {
				s.owners.forget(&events[i])
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stamp makes a valid timestamp of any time. An unknown time, or a year with more
// than four digits, becomes 1970.
func stamp(t time.Time) time.Time {
	if t.IsZero() || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}
