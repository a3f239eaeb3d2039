package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// Fragments implements eventlog.Salvager. It takes no lock until it meets bytes that
// look damaged or an append that looks unfinished. Then it waits for the writer and
// reads again.
func (s *Store) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		if err := s.beginCall("salvage session", session); err != nil {
			yield(eventlog.Fragment{}, err)
			return
		}
		defer s.endCall()
		scratch := lineBuffers.Get().(*[]byte)
		defer lineBuffers.Put(scratch)
		w, err := s.openFragments(ctx, session, scratch)
		if err == nil {
			defer w.close()
			err = w.run(ctx, yield)
			w.giveBack(&w.salvager.lines.buffer)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Fragment{}, fmt.Errorf("salvage session %q: %w", session, err))
		}
	}
}

// lineBuffers are the buffers of earlier readings, of type *[]byte.
var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

// fragmentReader reads a whole session file, damaged parts included.
type fragmentReader struct {
	*reader
	salvager salvager
}

// openFragments opens a file that has at least one byte. If the file seems to end in an
// unfinished append, it waits for the writer to finish.
func (s *Store) openFragments(ctx context.Context, session string, scratch *[]byte) (*fragmentReader, error) {
	name := fileOf(session)
	w := &fragmentReader{reader: &reader{store: s, name: name, source: source{session: session, path: s.path(name), scratch: scratch}}}
	if err := w.open(); err != nil {
		return nil, err
	}
	var err error
	size := w.info.Size
	if w.end < size {
		err = w.withLock(ctx, func(now int64) error {
			size = now
			return nil
		})
	}
	if err == nil && size == 0 {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.salvager = salvager{source: &w.reader.source}
	w.salvager.restart(0, size, w.borrow())
	return w, nil
}

// withLock calls f with the file size, under a shared lock that excludes writers.
func (w *fragmentReader) withLock(ctx context.Context, f func(size int64) error) error {
	if err := w.store.awaitLock(ctx, w.file, false); err != nil {
		return err
	}
	info, err := w.file.Stat()
	if err == nil {
		err = f(info.Size)
	}
	return errors.Join(err, w.file.Unlock())
}

func (w *fragmentReader) run(ctx context.Context, yield func(eventlog.Fragment, error) bool) error {
	for {
		if err := w.store.alive(ctx); err != nil {
			return err
		}
		f, err := w.salvager.next(ctx)
		if err != nil {
			return ignore(err, io.EOF)
		}
		if f.Err == nil {
			if !yield(f, nil) {
				return errStop
			}
			continue
		}
		found, err := w.readAgain(ctx, f.Offset)
		if err != nil {
			return err
		}
		for _, f := range found {
			if !yield(f, nil) {
				return errStop
			}
		}
	}
}

// readAgain reads fragments from an offset under the lock. Bytes that are bad now are
// damage, not an append in progress.
func (w *fragmentReader) readAgain(ctx context.Context, at int64) (found []eventlog.Fragment, err error) {
	const most, stretch = 512, 1 << 20
	w.giveBack(&w.salvager.lines.buffer)
	defer func() { w.salvager.lines.buffer = w.borrow() }()
	err = w.withLock(ctx, func(size int64) error {
		w.salvager.restart(at, size, buffer{})
		for len(found) < most && w.salvager.done < at+stretch {
			f, err := w.salvager.next(ctx)
			if err != nil {
				return ignore(err, io.EOF)
			}
			found = append(found, f)
		}
		return nil
	})
	return found, err
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
