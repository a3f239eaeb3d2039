package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// An import writes about so many events, or bytes of data, at a time, and meanwhile
// holds as many more.
const (
	batch      = 2048
	batchBytes = 1 << 20
)

// Session appends imported events to one session of a log, in batches. It
// knows which events the session has already. It is used by one goroutine. At the
// end Flush or Drop must be called, and Written.
//
// Seqs are known before events are written, because each batch is appended at
// the head that the session had: another writer's append in between is a
// conflict, after which the import may simply be run again.
type Session struct {
	ID string
	// Format is that of the importer that started the session in the log; empty
	// when the session is new, was not imported, or does not say so any more.
	Format string

	erased  bool // what it said of itself as it started was redacted
	log     *eventlog.Log
	head    event.Head
	known   map[Key]int64   // seqs
	pending [][]event.Event // appends, each of the events of one record
	count   int             // of pending events
	bytes   int             // of their data
	written int
	behind  *writing        // the batch that is being written; nil if none is
	spare   [][]event.Event // room for pending appends
	failed  error           // of a batch, which nobody was told yet
}

// writing is a batch on its way into the log.
type writing struct {
	appends [][]event.Event
	count   int // of events
	done    chan struct{}
	// Set once it is done:
	head event.Head
	err  error
}

// OpenSession finds a session in the log, or prepares a new one. each is called
// with every event that the session holds, in order; it must not keep them.
func OpenSession(ctx context.Context, log *eventlog.Log, id string, each func(*event.Event) error) (*Session, error) {
	s := &Session{ID: id, log: log, known: map[Key]int64{}}
	for e, err := range log.Read(ctx, id, eventlog.All()) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", id, err)
		}
		if err := s.noticed(&e, each); err != nil {
			return nil, fmt.Errorf("read session %q: event %d: %w", id, e.Seq, err)
		}
	}
	return s, nil
}

func (s *Session) noticed(e *event.Event, each func(*event.Event) error) error {
	s.head = e.Head()
	s.known[KeyOf(e.ID)] = e.Seq
	if e.Type == event.SessionStarted && e.Redacted() {
		s.erased = true
	} else if start, ok, err := event.Decode[event.Session](e); ok && err == nil && e.Type == event.SessionStarted {
		s.Format = start.Source.Format
	}
	return each(e)
}

// From reports whether records of one of the formats may be added: the session is
// new, was imported from one, or does not say any more from what.
func (s *Session) From(formats ...string) bool {
	return s.New() || s.erased || slices.Contains(formats, s.Format)
}

// New reports that the session has no events yet, written or added.
func (s *Session) New() bool { return s.Seq() == 0 }

// Seq is the seq of the newest event, written or added.
func (s *Session) Seq() int64 {
	seq := s.head.Seq + int64(s.count)
	if s.behind != nil {
		seq += int64(s.behind.count)
	}
	return seq
}

// Find gives the seq of the event with the key, if the session has it.
func (s *Session) Find(k Key) (seq int64, ok bool) {
	seq, ok = s.known[k]
	return seq, ok
}

// Add queues an event under its key and gives its seq. at becomes its
// timestamp. Events of one record should be added without a Flush between.
func (s *Session) Add(k Key, at time.Time, e event.Event) int64 {
	e.ID, e.Timestamp = k.ID(at), stamp(at)
	s.queue(e)
	s.known[k] = s.Seq()
	return s.Seq()
}

// Join queues an event in the append of the one that was added before it, so
// that both stand or neither. There must have been no Flush between.
func (s *Session) Join(k Key, at time.Time, e event.Event) int64 {
	e.ID, e.Timestamp = k.ID(at), stamp(at)
	last := &s.pending[len(s.pending)-1]
	*last = append(*last, e)
	s.count++
	s.bytes += len(e.Data)
	s.known[k] = s.Seq()
	return s.Seq()
}

// queue adds e to the pending appends: to the last of them, if that would be
// nothing without it.
func (s *Session) queue(e event.Event) {
	s.count++
	s.bytes += len(e.Data)
	if n := len(s.pending); n > 0 && leads(s.pending[n-1]) {
		s.pending[n-1] = append(s.pending[n-1], e)
		return
	}
	s.pending = append(s.pending, []event.Event{e})
}

// leads reports whether an append ends with an event that only makes way for
// the next.
func leads(events []event.Event) bool {
	last := events[len(events)-1].Type
	return last == event.SessionStarted || last == event.HeadMoved
}

// Full reports that it is time for FlushBehind.
func (s *Session) Full() bool { return s.count >= batch || s.bytes >= batchBytes }

// Written is how many events were appended.
func (s *Session) Written() int {
	s.failed = errors.Join(s.failed, s.settle())
	return s.written
}

// Drop forgets what was added since the last flush.
func (s *Session) Drop() {
	s.failed = errors.Join(s.failed, s.settle())
	s.forget(s.pending)
	clear(s.pending)
	s.pending, s.count, s.bytes = s.pending[:0], 0, 0
}

// Flush appends what was added, and waits for it. After an error, which may be that
// of an earlier FlushBehind, all that was not appended is forgotten.
func (s *Session) Flush(ctx context.Context) error {
	if err := s.FlushBehind(ctx); err != nil {
		return err
	}
	return s.settle()
}

// FlushBehind waits for the batch before, and goes on appending what was added while
// the caller adds more. Its error is that of Flush.
func (s *Session) FlushBehind(ctx context.Context) error {
	err := errors.Join(s.failed, s.settle())
	s.failed = nil
	if err != nil || len(s.pending) == 0 {
		return err
	}
	w := &writing{appends: s.pending, count: s.count, done: make(chan struct{})}
	s.behind, s.pending, s.spare, s.count, s.bytes = w, s.spare, nil, 0, 0
	expect := eventlog.At(s.head).Lenient()
	go func() {
		defer close(w.done)
		w.head, w.err = s.log.AppendEach(ctx, s.ID, expect, w.appends...)
	}()
	return nil
}

// settle waits for what is being written. If that failed, what was added behind it
// goes with it.
func (s *Session) settle() error {
	w := s.behind
	if w == nil {
		return nil
	}
	<-w.done
	s.behind = nil
	if w.err != nil {
		s.forget(w.appends)
		s.Drop()
		return fmt.Errorf("import into session %q: %w", s.ID, w.err)
	}
	s.head = w.head
	s.written += w.count
	clear(w.appends)
	s.spare = w.appends[:0]
	return nil
}

func (s *Session) forget(appends [][]event.Event) {
	for _, events := range appends {
		for i := range events {
			delete(s.known, KeyOf(events[i].ID))
		}
	}
}

// stamp makes a time that a line can hold of any time; times that are unknown
// or beyond four-digit years become 1970.
func stamp(t time.Time) time.Time {
	if t.IsZero() || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}
