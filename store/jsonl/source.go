package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var (
	errOtherSession = errors.New("line of another session")
	errFirstLine    = errors.New("the first line is neither seq 1 nor a fork")
)

// source is an open file and the session it must be of.
type source struct {
	file    File
	session string
	path    string // for errors
}

// parse reads a line of the session.
func (s *source) parse(line []byte) (event.Event, error) {
	e, err := event.Parse(line, s.session)
	if err != nil {
		err = s.explain(line, err)
	}
	return e, err
}

// explain tells a line of another session from a damaged one.
func (s *source) explain(line []byte, err error) error {
	if errors.Is(err, event.ErrVersion) || errors.Is(err, event.ErrForeign) {
		return err
	}
	if other, wrong := event.Parse(line, ""); wrong == nil {
		return fmt.Errorf("%w: %q", errOtherSession, other.SessionID)
	}
	return err
}

// check parses a line at its place, if reading it did not fail. due is the seq
// it must have, 0 if unknown.
func (s *source) check(line []byte, at, due int64, failed error) (e event.Event, err error) {
	if failed != nil {
		return e, failed
	}
	if e, err = event.Parse(line, s.session); err != nil {
		return e, s.explain(line, err)
	}
	if due > 0 && e.Seq != due {
		return e, fmt.Errorf("seq %d stands where %d is due", e.Seq, due)
	}
	if at == 0 && e.Seq != 1 && e.Type.Name() != event.SessionForked {
		return e, fmt.Errorf("%w but seq %d, %s", errFirstLine, e.Seq, e.Type)
	}
	return e, nil
}

// alien reports an error of a line that is whole, so that no unfinished write
// explains it: it is never cut off.
func isWholeLine(err error) bool {
	return errors.Is(err, event.ErrVersion) || errors.Is(err, event.ErrForeign) || errors.Is(err, errOtherSession)
}

// corrupt locates damage; a newer version is not damage and stays what it is.
func (s *source) corrupt(at, due int64, cause error) error {
	if errors.Is(cause, event.ErrVersion) {
		return fmt.Errorf("%s at byte %d: %w", s.path, at, cause)
	}
	return &eventlog.CorruptError{Session: s.session, Path: s.path, Offset: at, Seq: max(due, 0), Cause: cause}
}

// lineAt reads the line that starts at offset at.
func (s *source) lineAt(at, end int64) (line []byte, next int64, err error) {
	l := forward{file: s.file, next: at, end: end, chunk: page}
	line, _, err = l.line()
	return line, l.next, err
}

// seek finds the first line whose seq is at least seq, by halving the file;
// end if there is none. It believes the lines' prefixes: what stands at the
// offset is still to be checked.
func (s *source) seek(seq, end int64) (int64, error) {
	const near = 16 << 10
	low, high := int64(0), end // the line starts in [low, high], or is none
	if first, ok := s.seqAt(0); !ok || first >= seq {
		return 0, nil
	}
	for high-low > near {
		mid := low + (high-low)/2
		at, err := s.nextStart(mid, high)
		if err != nil {
			return 0, err
		}
		if at >= high {
			high = mid
			continue
		}
		found, ok := s.seqAt(at)
		switch {
		case !ok:
			return s.scanFor(low, seq, end)
		case found == seq:
			return at, nil
		case found > seq:
			high = mid
		default:
			low = at
		}
	}
	return s.scanFor(low, seq, end)
}

// walk is seek from the start of a line on, line by line.
func (s *source) scanFor(from, seq, end int64) (int64, error) {
	l := forward{file: s.file, next: from, end: end}
	for {
		line, at, err := l.line()
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return at, nil // whoever reads there meets the damage
		}
		if found, ok := s.seqOf(line); !ok || found >= seq {
			return at, nil
		}
	}
}

// nextStart finds the first start of a line after offset at; limit if there is
// none before it.
func (s *source) nextStart(at, limit int64) (int64, error) {
	for size := int64(page); at < limit; size = min(4*size, largestChunk) {
		buf := make([]byte, min(size, limit-at))
		n, err := readFull(s.file, buf, at)
		if err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if n == 0 {
			break
		}
		at += int64(n)
	}
	return limit, nil
}

// seqAt reads the seq of the line at an offset from its first bytes.
func (s *source) seqAt(at int64) (int64, bool) {
	var buf [64]byte
	n, err := readFull(s.file, buf[:], at)
	if err != nil {
		return 0, false
	}
	if seq, ok := seqPrefix(buf[:n]); ok {
		return seq, true
	}
	info, err := s.file.Stat()
	if err != nil {
		return 0, false
	}
	line, _, err := s.lineAt(at, info.Size)
	if err != nil {
		return 0, false
	}
	return s.seqOf(line)
}

// seqOf is the seq that a line claims.
func (s *source) seqOf(line []byte) (int64, bool) {
	if seq, ok := seqPrefix(line); ok {
		return seq, true
	}
	e, err := s.parse(line)
	return e.Seq, err == nil
}

// seqPrefix reads the seq of a line in canonical order without its checksum.
func seqPrefix(line []byte) (int64, bool) {
	const crc, v = `{"crc":"`, `","v":1,"seq":`
	const digits = len(crc) + 8 + len(v)
	if len(line) < digits || string(line[:len(crc)]) != crc || string(line[len(crc)+8:digits]) != v {
		return 0, false
	}
	i := bytes.IndexByte(line[digits:], ',')
	if i < 0 {
		return 0, false
	}
	seq, err := strconv.ParseInt(string(line[digits:digits+i]), 10, 64)
	return seq, err == nil && seq > 0
}
