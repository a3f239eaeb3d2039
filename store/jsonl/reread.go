package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// readAgain reads a bad line again, under a shared lock, in the file that has the
// session's name now. A writer may have truncated or replaced the file in between. If
// the line is still bad, it is damage. errStop means that the line was truncated with a
// torn tail.
func (r *reader) readAgain(ctx context.Context, at, due int64, cause error) (event.Event, int64, error) {
	if errors.Is(cause, event.ErrVersion) {
		return event.Event{}, at, r.corrupt(at, due, cause)
	}
	inode, first := r.info.Inode, r.firstID()
	unlock, err := r.relock(ctx)
	if unlock != nil {
		defer unlock()
	}
	if err == nil && r.info.Inode != inode && !isSame(first, r.firstID()) {
		err = eventlog.ErrNotFound // removed, and another session with this name begun
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

// firstID returns the id of the file's first event, or the zero id if the first line is
// damaged.
func (r *reader) firstID() ulid.ULID {
	line, _, err := r.lineAt(0, r.info.Size)
	e, err := r.check(line, 0, 0, err)
	if err != nil {
		return ulid.ULID{}
	}
	return e.ID
}

// isSame reports whether two files may be the same session, by the ids of their first
// events. With a damaged first line a file may be any session.
func isSame(a, b ulid.ULID) bool {
	return a == b || a == ulid.ULID{} || b == ulid.ULID{}
}

// readSameFile reads the line again in a file that was not replaced. If the line is
// still bad, it reports the first bad line of the file: earlier damage may have misled
// the search.
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

// errLocked reports that a writer has the lock of a file.
var errLocked = errors.New("a writer has the lock")

// lockShared takes the shared lock of a file. A reader that does not wait gets errLocked.
func (r *reader) lockShared(ctx context.Context, file File) error {
	if !r.noWait {
		return r.store.awaitLock(ctx, file, false)
	}
	ok, err := file.TryLock(false)
	if err == nil && !ok {
		err = errLocked
	}
	return err
}

// relock opens the session again and takes a shared lock. unlock may be nil if err is
// not nil.
func (r *reader) relock(ctx context.Context) (unlock func(), err error) {
	for {
		if err := r.store.checkOpen("read session", r.session); err != nil {
			return nil, err
		}
		file, err := r.store.fs.Open(r.name, os.O_RDONLY)
		if isAbsent(err) {
			return nil, eventlog.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		if err := r.lockShared(ctx, file); err != nil {
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
			r.end = min(r.end, was) // exclude appends since the first open
		}
		return func() { _ = file.Unlock() }, err
	}
}

// locate finds the line with seq due, in case the file was replaced. If damage misleads
// the search, it checks all lines from the start and reports the first bad one.
func (r *reader) locate(at, due int64) (int64, error) {
	if due <= 0 {
		if r.span.Backward {
			l := backwardLines{file: r.file, end: r.end}
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

// findLine returns the offset of the line with seq due. If the session ends before due,
// it was truncated: a forward read ends without an error, a backward read returns
// errTruncated because it has yielded later events.
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

// checkUpTo checks every line up to seq due and returns the offset of that line. It
// returns io.EOF if the session ends before.
func (r *reader) checkUpTo(due int64) (int64, error) {
	lines := forwardLines{file: r.file, end: r.end}
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
