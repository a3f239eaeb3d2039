package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Read implements eventlog.Store. It takes no lock unless it meets a line that
// looks damaged. A rewrite does not disturb it: it goes on in the old file.
func (s *Store) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r, err := s.openReader(session)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer r.close()
		r.span = span
		err = r.run(ctx, yield)
		if err != nil && !errors.Is(err, errStop) {
			yield(event.Event{}, err)
		}
	}
}

var (
	// errStop ends a reading without an error.
	errStop = errors.New("stop")
	// errCutOff is of what a reading backward has begun with.
	errTruncated = errors.New("what stood behind here was cut off, or is to be: it follows a hole")
)

// reader reads one session, up to the head it had at the start.
type reader struct {
	source
	store *Store
	name  string
	info  Info
	tail  // of what may be shown; last is set where it had to be read
	span  eventlog.Span
	// thorough readers look for a hole that complete appends follow; others look
	// at the two ends of the file only.
	checkHoles bool
}

// openReader opens a session that has at least one event.
func (s *Store) openReader(session string) (*reader, error) {
	if err := s.usable("read session", session); err != nil {
		return nil, err
	}
	name := escape(session) + extension
	r := &reader{store: s, name: name, checkHoles: true, source: source{session: session, path: s.path(name)}}
	err := r.open()
	if err == nil && r.end == 0 {
		r.close()
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read session %q: %w", session, err)
	}
	return r, nil
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
	if r.info, err = file.Stat(); err == nil {
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
		r.file = nil
	}
}

// boundary is the end of what may be shown: what this process's own writer has
// acknowledged, or else the end of the last complete append.
func (r *reader) visibleTail() (tail, error) {
	if v, ok := r.store.cache.view(r.session); ok && v.inode == r.info.Inode && r.info.Size <= v.pending {
		if r.info.Size < v.visible { // it grew since
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
	lines := forward{file: r.file, next: at, end: r.end}
	before := 0 // how many events of its append were to follow the last one
	for n := 0; r.span.Limit <= 0 || n < r.span.Limit; n++ {
		if err := ctx.Err(); err != nil {
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
			lines = forward{file: r.file, next: at + int64(len(e.Line())) + 1, end: r.end}
		}
		if before > 0 && e.More() != before-1 {
			return r.corrupt(at, due, errUnfinished)
		}
		if past(e.Seq, r.span.To) || !yield(e, nil) || e.Seq == r.span.To {
			return nil
		}
		due, before = e.Seq+1, e.More()
	}
	return nil
}

// start is where the first event of the span stands, and its seq if that is
// certain.
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

func past(seq, to int64) bool { return to > 0 && seq > to }

func (r *reader) backward(ctx context.Context, yield func(event.Event, error) bool) error {
	end, due, err := r.stop()
	if err != nil {
		return err
	}
	if end == r.end { // the last line need not be the newest
		if err := r.confirmDamage(ctx); err != nil {
			return err
		}
		end = r.end
	}
	lines := backward{file: r.file, end: end}
	var after event.Event
	for n := 0; r.span.Limit <= 0 || n < r.span.Limit; n++ {
		if err := ctx.Err(); err != nil {
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
		e, err := r.check(line, at, due, err)
		if err != nil {
			if e, at, err = r.readAgain(ctx, at, due, err); err != nil {
				return err
			}
			lines = backward{file: r.file, end: at}
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

// stop is where the last event of the span ends, and its seq if that is
// certain.
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

// confirm reports damage behind what may be shown, if it is still there when
// nobody writes.
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

// again reads a bad line once more, under a shared lock and in the file that
// has the session's name now: a writer may have cut the file, or replaced it,
// under the reader. Only what is bad then is damage. errStop says that the
// line is gone with a tail that was cut.
func (r *reader) readAgain(ctx context.Context, at, due int64, cause error) (event.Event, int64, error) {
	if errors.Is(cause, event.ErrVersion) {
		return event.Event{}, at, r.corrupt(at, due, cause)
	}
	inode := r.info.Inode
	unlock, err := r.relock(ctx)
	if unlock != nil {
		defer unlock()
	}
	if err != nil {
		return event.Event{}, at, fmt.Errorf("read session %q again: %w", r.session, err)
	}
	if r.info.Inode == inode && at < r.end {
		return r.readSameFile(at, due)
	}
	if at, err = r.locate(at, due); err != nil {
		return event.Event{}, at, err
	}
	line, _, err := r.lineAt(at, r.end)
	e, err := r.check(line, at, due, err)
	if err != nil {
		return e, at, r.corrupt(at, due, err)
	}
	return e, at, nil
}

// reread reads a line of a file that nobody has replaced. If it is still bad,
// the first bad line of the file is reported, as damage before it may have
// misled the search for this one.
func (r *reader) readSameFile(at, due int64) (event.Event, int64, error) {
	line, _, err := r.lineAt(at, r.end)
	e, err := r.check(line, at, due, err)
	if err == nil {
		return e, at, nil
	}
	first, damage := r.checkUpTo(math.MaxInt64)
	if errors.Is(damage, io.EOF) {
		first, damage = at, r.corrupt(at, due, err)
	}
	return event.Event{}, first, damage
}

// relock opens the session anew and takes a shared lock.
func (r *reader) relock(ctx context.Context) (unlock func(), err error) {
	for {
		if err := r.store.usable("read session", r.session); err != nil {
			return nil, err
		}
		file, err := r.store.fs.Open(r.name, os.O_RDONLY)
		if isAbsent(err) {
			return nil, eventlog.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		if err := r.store.awaitLock(ctx, file, false); err != nil {
			_ = file.Close()
			return nil, err
		}
		info, err := file.Stat()
		if err == nil && info.Links == 0 {
			_ = file.Close()
			continue
		}
		before, was := r.info.Inode, r.end
		r.close()
		r.file, r.info = file, info
		if err == nil {
			r.tail, err = r.scanTail(info.Size, 0, 0)
		}
		if info.Inode == before {
			r.end = min(r.end, was) // not what was appended since
		}
		return func() { _ = file.Unlock() }, err
	}
}

// place finds the line with the seq that is due. Where damage misleads the
// search, the file is walked from its start, and the first bad line reported.
func (r *reader) locate(at, due int64) (int64, error) {
	if due <= 0 {
		if r.span.Backward {
			l := backward{file: r.file, end: r.end}
			_, at, err := l.line()
			if errors.Is(err, io.EOF) {
				return at, errStop
			}
			return at, nil
		}
		return at, nil
	}
	if line, _, err := r.lineAt(at, r.end); at < r.end {
		if _, err := r.check(line, at, due, err); err == nil {
			return at, nil
		}
	}
	return r.findLine(due)
}

// walkTo is walk, and where the session ends before due, it was cut meanwhile:
// that ends a reading, but for one that has shown later events already.
func (r *reader) findLine(due int64) (int64, error) {
	at, err := r.checkUpTo(due)
	if errors.Is(err, io.EOF) && r.span.Backward {
		return at, r.corrupt(at, due, errTruncated)
	}
	if errors.Is(err, io.EOF) {
		return at, errStop
	}
	return at, err
}

// walk checks every line up to the one with seq due, and gives its place; io.EOF
// if there is none.
func (r *reader) checkUpTo(due int64) (int64, error) {
	lines := forward{file: r.file, end: r.end}
	for next := int64(0); ; next++ {
		line, at, err := lines.line()
		if errors.Is(err, io.EOF) {
			return at, io.EOF
		}
		e, err := r.check(line, at, next, err)
		if err != nil {
			return at, r.corrupt(at, next, err)
		}
		if e.Seq >= due {
			return at, nil
		}
		next = e.Seq
	}
}
