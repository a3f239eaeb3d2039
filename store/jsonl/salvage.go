package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// salvager splits a file into readable lines and unreadable bytes. It searches bad
// lines for good ones: a newline may be lost, or other bytes may precede a line. It
// also searches lines over longestLine, one half at a time.
type salvager struct {
	*source
	lines    forwardLines
	queue    []eventlog.Fragment // fragments found and not all returned yet
	served   int                 // how many of queue next has returned
	done     int64               // all fragments before this offset are in queue or returned
	cause    error               // the error of the bad bytes from done on
	searched int64               // bytes that object has searched
}

// next returns the next fragment, or io.EOF at the end of the file.
func (s *salvager) next(ctx context.Context) (eventlog.Fragment, error) {
	if s.served == len(s.queue) {
		s.queue, s.served = s.queue[:0], 0
	}
	for len(s.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return eventlog.Fragment{}, err
		}
		line, at, err := s.lines.line()
		if err == nil {
			err = s.addEvent(line, at, int64(len(line))+1)
		}
		if err != nil {
			err = s.split(line, at, err)
		}
		if err != nil {
			return eventlog.Fragment{}, err
		}
	}
	s.served++
	return s.queue[s.served-1], nil
}

// restart continues at an offset, in a file of size bytes.
func (s *salvager) restart(at, size int64, b buffer) {
	s.lines = forwardLines{file: s.file, next: at, end: size, buffer: b}
	s.queue, s.served, s.done, s.cause = nil, 0, at, nil
}

// lineError is an error in the content of a line, not in reading it.
type lineError struct{ error }

func (u lineError) Unwrap() error { return u.error }

// addEvent queues a line if it parses, for any session. size includes the newline, if
// the line has one.
func (s *salvager) addEvent(line []byte, at, size int64) error {
	e, err := event.Parse(line, s.session)
	if err != nil {
		var wrong error
		if e, wrong = event.Parse(line, ""); wrong != nil {
			return lineError{err}
		}
	}
	s.addBad(at)
	s.queue = append(s.queue, eventlog.Fragment{Event: e, Path: s.path, Offset: at, Bytes: size})
	s.done = at + size
	return nil
}

// addBad queues the unreadable bytes from done to at.
func (s *salvager) addBad(at int64) {
	if s.done < at {
		s.queue = append(s.queue, eventlog.Fragment{Path: s.path, Offset: s.done, Bytes: at - s.done, Err: s.cause})
		s.done = at
	}
}

// split queues the fragments of a line that failed to parse. Of a line over longestLine
// it handles the first half.
func (s *salvager) split(line []byte, at int64, failed error) error {
	bad, whole := failed.(lineError)
	switch {
	case whole:
		failed = bad.error
	case errors.Is(failed, io.EOF) && s.done < at:
		s.addBad(at)
		s.queue[len(s.queue)-1].Unended = true
		return nil
	case !errors.Is(failed, errUnterminated) && !errors.Is(failed, errTooLong):
		return failed
	}
	if s.done == at {
		s.cause = failed
	}
	switch {
	case whole:
		s.search(line, at, len(line), 1)
		s.addBad(s.lines.next)
	case errors.Is(failed, errTooLong):
		s.lines.skip(s.search(line, at, maxAppend, 0))
	default:
		s.search(line, at, len(line), 0)
		s.lines.skip(len(line))
		s.addBad(s.lines.next)
		s.queue[len(s.queue)-1].Unended = true
	}
	return nil
}

// lineStart is how a canonical line begins.
const lineStart = `{"crc":"`

// search queues the good lines that begin in b before limit. newline is the length of
// the newline after b: 0 or 1. It returns how many bytes of b are done.
func (s *salvager) search(b []byte, at int64, limit, newline int) int {
	from := 0
	for from < limit {
		i := bytes.Index(b[from:min(limit+len(lineStart)-1, len(b))], []byte(lineStart))
		if i < 0 {
			return limit
		}
		start := from + i
		from = start + 1
		end := s.object(b, start, at)
		if end == 0 || isNested(b, start, end) {
			continue
		}
		size := int64(end - start)
		if end == len(b) {
			size += int64(newline)
		}
		if s.addEvent(b[start:end:end], at+int64(start), size) == nil {
			from = end
		}
	}
	return from
}

// isNested reports whether the object b[start:end] looks like a value inside a larger
// damaged object. Then it is content, not a line.
func isNested(b []byte, start, end int) bool {
	return start > 0 && end < len(b) && bytes.IndexByte([]byte(":,["), b[start-1]) >= 0 && bytes.IndexByte([]byte(",]}"), b[end]) >= 0
}

// object returns the end of the JSON object that begins at b[start], or 0 if it has no
// end. It gives up if unclosed objects make the search longer than a fixed multiple of
// the file: so salvage takes linear time.
func (s *salvager) object(b []byte, start int, at int64) (end int) {
	const grace, factor = 16 << 20, 8
	if s.searched > grace+factor*(at+int64(start)) {
		return 0
	}
	depth, quoted := 0, false
	i := start
	for ; i < len(b) && i-start <= maxAppend; i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				end = i + 1
				s.searched += int64(end - start)
				return end
			}
		}
	}
	s.searched += int64(i - start)
	return 0
}
