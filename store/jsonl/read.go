package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
)

// Read implements eventlog.Store. It takes no lock unless it meets a line that looks
// damaged. A concurrent rewrite does not disturb it: Read continues in the old file.
func (s *Store) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return s.ReadLines(ctx, session, span, nil)
}

// ReadLines implements eventlog.LineReader. It leaves out lines of backward reads only. It
// checks the crc and the seq of a line that it leaves out.
func (s *Store) ReadLines(ctx context.Context, session string, span eventlog.Span, wanted func(line []byte) bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := s.beginCall("read session", session); err != nil {
			yield(event.Event{}, err)
			return
		}
		defer s.endCall()
		r := s.reader(session, span)
		if wanted != nil && span.Backward && span.Transient {
			r.wanted = wanted
			r.scratch, r.holding = lineBuffers.Get().(*[]byte), heldFiles.Get().(*[]byte)
			defer lineBuffers.Put(r.scratch)
			defer heldFiles.Put(r.holding)
		}
		if err := r.openEvents(); err != nil {
			yield(event.Event{}, err)
			return
		}
		defer r.close()
		err := r.run(ctx, yield)
		if err != nil && !errors.Is(err, errStop) {
			yield(event.Event{}, err)
		}
	}
}

var (
	// errStop ends a read without an error.
	errStop = errors.New("stop")
	// errTruncated means that a backward read began after a hole: it has already
	// yielded events that recovery removes.
	errTruncated = errors.New("the lines after this one follow a hole: they were truncated or will be")
)

// reader reads one session, up to the head at the time it was opened.
type reader struct {
	source
	store *Store
	name  string
	info  Info
	tail  // the end of the readable part; last is set only if finding the end read it
	span  eventlog.Span
	// wanted is false for a line that a backward read may leave out; nil wants all lines.
	wanted func(line []byte) bool
	// held are the bytes of the file, in *holding, if it is small. holding may be nil.
	held    []byte
	holding *[]byte
	// checkHoles makes open scan for holes. Without it, only the end of the file is
	// read.
	checkHoles bool
	// noWait makes relock return errLocked while a writer has the lock.
	noWait bool
}

func (s *Store) reader(session string, span eventlog.Span) *reader {
	name := fileOf(session)
	return &reader{store: s, name: name, checkHoles: true, span: span, source: source{session: session, path: s.path(name)}}
}

// openEvents opens a session that has at least one event.
func (r *reader) openEvents() error {
	err := r.open()
	if err == nil && r.end == 0 {
		r.close()
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read session %q: %w", r.session, err)
	}
	return nil
}

func (r *reader) open() error {
	file, err := r.store.fs.Open(r.name, os.O_RDONLY)
	if isAbsent(err) {
		return eventlog.ErrNotFound
	}
	if err != nil {
		return err
	}
	r.file = file
	if r.info, err = file.Stat(); err == nil && r.holding != nil {
		err = r.hold()
	}
	if err == nil {
		r.tail, err = r.visibleTail()
	}
	if err != nil {
		r.close()
	}
	return err
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file, r.held = nil, nil
	}
}

// visibleTail returns the end of the readable part: the last acknowledged append if
// this process has a writer of the session, else the last complete append.
func (r *reader) visibleTail() (tail, error) {
	if v, ok := r.store.cache.view(r.session); ok && v.inode == r.info.Inode && r.info.Size <= v.pending {
		if r.info.Size < v.visible { // the file has grown since Stat
			again, err := r.file.Stat()
			if err != nil {
				return tail{}, err
			}
			r.info = again
		}
		if r.info.Size >= v.visible {
			return tail{end: v.visible}, nil
		}
	}
	if r.checkHoles {
		t, found, err := r.tailBeforeHole()
		if found || err != nil {
			return t, err
		}
	}
	return r.findTail(r.info.Size)
}

func (r *reader) run(ctx context.Context, yield func(event.Event, error) bool) error {
	if r.span.Backward {
		return r.backward(ctx, yield)
	}
	return r.forward(ctx, yield)
}

func (r *reader) forward(ctx context.Context, yield func(event.Event, error) bool) error {
	at, due, err := r.start()
	if err != nil {
		return err
	}
	lines := forwardLines{file: r.file, next: at, end: r.end, buffer: buffer{transient: r.span.Transient}}
	before := 0 // how many events of the current append follow the previous line
	for n := 0; r.span.Limit <= 0 || n < r.span.Limit; n++ {
		if err := r.store.alive(ctx); err != nil {
			return err
		}
		line, at, err := lines.line()
		if errors.Is(err, io.EOF) {
			return r.confirmDamage(ctx)
		}
		e, err := r.check(line, at, due, err)
		if err != nil {
			if e, at, err = r.readAgain(ctx, at, due, err); err != nil {
				return err
			}
			lines = forwardLines{file: r.file, next: at + int64(len(e.Line())) + 1, end: r.end, buffer: lines.buffer}
		}
		if before > 0 && e.More() != before-1 {
			return r.corrupt(at, due, errUnfinished)
		}
		if isAfter(e.Seq, r.span.To) || !yield(e, nil) || e.Seq == r.span.To {
			return nil
		}
		due, before = e.Seq+1, e.More()
	}
	return nil
}

// start returns the offset of the first event of the span, and its seq if known.
func (r *reader) start() (at, due int64, err error) {
	if r.span.From <= 1 {
		return 0, 0, nil
	}
	at, err = r.seek(r.span.From, r.end)
	if at > 0 {
		due = r.span.From
	}
	return at, due, err
}

func isAfter(seq, to int64) bool { return to > 0 && seq > to }

func (r *reader) backward(ctx context.Context, yield func(event.Event, error) bool) error {
	end, due, err := r.stop()
	if err != nil {
		return err
	}
	if end == r.end { // the newest events may be unreadable: report that
		if err := r.confirmDamage(ctx); err != nil {
			return err
		}
		end = r.end
	}
	lines, held := r.heldLines(end)
	if !held {
		b := buffer{transient: r.span.Transient}
		if r.scratch != nil {
			b = r.borrow()
			defer r.giveBack(&lines.buffer)
		}
		lines = backwardLines{file: r.file, end: end, buffer: b}
	}
	var after event.Event
	for n := 0; r.span.Limit <= 0 || n < r.span.Limit; n++ {
		if err := r.store.alive(ctx); err != nil {
			return err
		}
		if due > 0 && due < r.span.From {
			return nil
		}
		line, at, err := lines.line()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if after.Seq == 1 {
			return r.corrupt(0, 0, errFirstLine)
		}
		if seq, skip := r.leavesOut(line, due, err); skip {
			due, after = seq-1, event.Event{}
			continue
		}
		e, err := r.check(line, at, due, err)
		if err != nil {
			if e, at, err = r.readAgain(ctx, at, due, err); err != nil {
				return err
			}
			lines = backwardLines{file: r.file, end: at, buffer: lines.buffer}
		}
		if after.Seq > 0 && e.More() > 0 && after.More() != e.More()-1 {
			return r.corrupt(at+int64(len(e.Line()))+1, after.Seq, errUnfinished)
		}
		if e.Seq < r.span.From || !yield(e, nil) {
			return nil
		}
		due, after = e.Seq-1, e
	}
	return nil
}

// leavesOut reports whether a backward read leaves out the line before event due+1. The seq in
// the line must be due; an unknown due is 0. The line is checked in all other cases.
func (r *reader) leavesOut(text []byte, due int64, failed error) (seq int64, ok bool) {
	if r.wanted == nil || failed != nil {
		return 0, false
	}
	seq, ok = seqPrefix(text)
	return seq, ok && seq > 1 && (due <= 0 || seq == due) && !r.wanted(text) && line.Intact(text)
}

// stop returns the offset after the last event of the span, and the event's seq if
// known.
func (r *reader) stop() (end, due int64, err error) {
	if r.span.To <= 0 {
		return r.end, 0, nil
	}
	end, err = r.seek(r.span.To+1, r.end)
	if end < r.end && end > 0 {
		due = r.span.To
	}
	return end, due, err
}

// confirmDamage reports damage after the readable part, if a second read under the lock
// finds it too.
func (r *reader) confirmDamage(ctx context.Context) error {
	if r.damage == nil {
		return nil
	}
	unlock, err := r.relock(ctx)
	if unlock != nil {
		defer unlock()
	}
	if err != nil {
		return fmt.Errorf("read session %q again: %w", r.session, err)
	}
	return r.damage
}
