package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Lines yields the events of a text that Log.Export wrote, or of a session file
// without spilled data, in the order of the lines. It reads as it is asked to,
// and once. A bad line's error names its number: a *eventlog.CorruptError for
// one that is damaged, ErrForeign, a *VersionError, or ErrBlobNotFound for an
// event whose data is in a blob elsewhere. Blobs of the export are passed over.
func Lines(r io.Reader) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l := lines{in: bufio.NewReaderSize(r, 64<<10)}
		for {
			e, err := l.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

type lines struct {
	in     *bufio.Reader
	number int
	offset int64 // of the line after
	more   int   // events of the append that are still to come
}

// next reads lines up to one that is an event. The end is io.EOF.
func (l *lines) next() (event.Event, error) {
	for {
		at := l.offset
		line, err := l.in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return event.Event{}, fmt.Errorf("read line %d: %w", l.number+1, err)
		}
		l.number++
		l.offset += int64(len(line))
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && !bytes.HasPrefix(line, []byte(`{"blob":`)) {
			return l.event(line, at)
		}
		if err != nil {
			return event.Event{}, l.end(at)
		}
	}
}

func (l *lines) event(line []byte, at int64) (event.Event, error) {
	e, err := event.Parse(line, "")
	switch {
	case errors.Is(err, event.ErrForeign) || errors.Is(err, event.ErrVersion):
	case err != nil:
		err = &eventlog.CorruptError{Path: "text", Offset: at, Cause: err}
	case l.more > 0 && e.More() != l.more-1:
		err = l.cut(at)
	case e.Data == nil && !e.Redacted():
		err = fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, eventlog.ErrBlobNotFound)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("line %d: %w", l.number, err)
	}
	l.more = e.More()
	return e, nil
}

// end is what the end of the text is.
func (l *lines) end(at int64) error {
	if l.more > 0 {
		return fmt.Errorf("line %d: %w", l.number, l.cut(at))
	}
	return io.EOF
}

var errCutAppend = errors.New("the append before it lacks its last events")

// cut is the error of an append that does not go on at an offset.
func (l *lines) cut(at int64) error {
	return &eventlog.CorruptError{Path: "text", Offset: at, Cause: errCutAppend}
}
