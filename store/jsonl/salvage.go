package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// salvager takes a file apart into lines that can be read and bytes that
// cannot. In a bad line it looks for good ones: a newline may be lost, or
// something else stand before a line. A line that begins in the first half of
// longestLine ends in it.
type salvager struct {
	*source
	lines forward
	queue []eventlog.Fragment // what was taken apart
	served int                 // how many of them next gave
	done  int64               // up to where everything was found
	cause error               // of the bad bytes from told on
	searched int64               // how many bytes were searched for the end of an object
}

// next gives the fragment that comes next; io.EOF at the end of the file.
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

// restart goes on from an offset, in a file of size bytes.
func (s *salvager) restart(at, size int64) {
	s.lines = forward{file: s.file, next: at, end: size}
	s.queue, s.served, s.done, s.cause = nil, 0, at, nil
}

// unreadable is an error of a line, and not of reading it.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// event takes a line of whatever session that can be read. size counts its
// newline, if it has one.
func (s *salvager) addEvent(line []byte, at, size int64) error {
	e, err := event.Parse(line, s.session)
	if err != nil {
		var wrong error
		if e, wrong = event.Parse(line, ""); wrong != nil {
			return unreadable{err}
		}
	}
	s.addBad(at)
	s.queue = append(s.queue, eventlog.Fragment{Event: e, Path: s.path, Offset: at, Bytes: size})
	s.done = at + size
	return nil
}

// reject takes the bytes before an offset that are in no line.
func (s *salvager) addBad(at int64) {
	if s.done < at {
		s.queue = append(s.queue, eventlog.Fragment{Path: s.path, Offset: s.done, Bytes: at - s.done, Err: s.cause})
		s.done = at
	}
}

// split takes apart what failed to be a line. Of a line that is too long to be
// held it takes the front half.
func (s *salvager) split(line []byte, at int64, failed error) error {
	bad, whole := failed.(unreadable)
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

// lineStart is how a line in canonical order begins.
const lineStart = `{"crc":"`

// search finds lines that begin in b before limit. A newline of so many bytes
// follows b. It says how much of b is settled.
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
		if end == 0 || nested(b, start, end) {
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

// nested reports whether the object b[start:end] looks like a value inside
// another one, which is damaged: it is content then, and no line.
func nested(b []byte, start, end int) bool {
	return start > 0 && end < len(b) && bytes.IndexByte([]byte(":,["), b[start-1]) >= 0 && bytes.IndexByte([]byte(",]}"), b[end]) >= 0
}

// object finds the end of the JSON object that begins at b[start]; 0 if there
// is none. Objects that begin again and again and do not end are given up
// after a while, so that taking a file apart takes time in proportion to it.
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
