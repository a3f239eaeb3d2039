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

// source is an open file and the session id it must hold.
type source struct {
	file    File
	session string
	path    string // for error messages
	// scratch is a buffer for lines that are dropped after a look. A listing has one for all
	// sessions. It may be nil.
	scratch *[]byte
}

// borrow returns the scratch buffer, or a new one.
func (s *source) borrow() buffer {
	b := buffer{transient: true}
	if s.scratch != nil {
		b.bytes = *s.scratch
	}
	return b
}

// giveBack keeps a borrowed buffer, which may have grown.
func (s *source) giveBack(b *buffer) {
	if s.scratch != nil {
		*s.scratch = b.bytes
	}
}

// parse parses a line of the session.
func (s *source) parse(line []byte) (event.Event, error) {
	e, err := event.Parse(line, s.session)
	if err != nil {
		err = s.explain(line, err)
	}
	return e, err
}

// explain replaces err if the line belongs to another session and is intact.
func (s *source) explain(line []byte, err error) error {
	if errors.Is(err, event.ErrVersion) || errors.Is(err, event.ErrForeign) {
		return err
	}
	if other, wrong := event.Parse(line, ""); wrong == nil {
		return fmt.Errorf("%w: %q", errOtherSession, other.SessionID)
	}
	return err
}

// check parses the line at offset at and checks its place. due is the seq it must have,
// or 0 if unknown. If failed is not nil, check returns it.
func (s *source) check(line []byte, at, due int64, failed error) (e event.Event, err error) {
	if failed != nil {
		return e, failed
	}
	if e, err = event.Parse(line, s.session); err != nil {
		return e, s.explain(line, err)
	}
	if due > 0 && e.Seq != due {
		return e, fmt.Errorf("seq is %d, want %d", e.Seq, due)
	}
	if at == 0 && e.Seq != 1 && e.Type.Name() != event.SessionForked {
		return e, fmt.Errorf("%w but seq %d, %s", errFirstLine, e.Seq, e.Type)
	}
	return e, nil
}

// checkCopy is check for an event that is kept: the event has its own bytes, so it does
// not keep the buffer that the line was read into.
func (s *source) checkCopy(line []byte, at, due int64, failed error) (event.Event, error) {
	if failed == nil {
		line = bytes.Clone(line)
	}
	return s.check(line, at, due, failed)
}

// isWholeLine reports whether err is about an intact line: a newer version, or a line
// of another session. An unfinished write cannot cause it, so such a line is never
// truncated.
func isWholeLine(err error) bool {
	return errors.Is(err, event.ErrVersion) || errors.Is(err, event.ErrForeign) || errors.Is(err, errOtherSession)
}

// corrupt returns a CorruptError at offset at. For a newer version, which is not
// damage, it returns an ErrVersion with the place.
func (s *source) corrupt(at, due int64, cause error) error {
	if errors.Is(cause, event.ErrVersion) {
		return fmt.Errorf("%s at byte %d: %w", s.path, at, cause)
	}
	return &eventlog.CorruptError{Session: s.session, Path: s.path, Offset: at, Seq: max(due, 0), Cause: cause}
}

// lineAt reads the line that starts at offset at. next is the offset after it.
func (s *source) lineAt(at, end int64) (line []byte, next int64, err error) {
	l := forwardLines{file: s.file, next: at, end: end, chunk: page}
	line, _, err = l.line()
	return line, l.next, err
}

// seek returns the offset of the first line whose seq is at least seq, or end if there
// is none. It uses binary search, and begins near the end, because most reads are of the newest
// lines. It reads only the start of each line: the caller must check the line it finds.
func (s *source) seek(seq, end int64) (int64, error) {
	const near = 16 << 10
	low, high := int64(0), end // the line starts in [low, high], or does not exist
	if first, ok := s.seqAt(0); !ok || first >= seq {
		return 0, nil
	}
	for back := int64(near); high-low > near; back = min(4*back, end) {
		middle := low + (high-low)/2
		mid := max(middle, end-back)
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
		case !ok && mid > middle: // damage near the end is no reason to scan the file
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

// scanFor is seek, line by line from the start of a line at from.
func (s *source) scanFor(from, seq, end int64) (int64, error) {
	l := forwardLines{file: s.file, next: from, end: end}
	for {
		line, at, err := l.line()
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return at, nil // the reader of this line finds the damage
		}
		if found, ok := s.seqOf(line); !ok || found >= seq {
			return at, nil
		}
	}
}

// nextStart returns the first start of a line after offset at, or limit if there is
// none before limit.
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

// seqOf returns the seq in a line. It checks the checksum only if the line is not
// canonical.
func (s *source) seqOf(line []byte) (int64, bool) {
	if seq, ok := seqPrefix(line); ok {
		return seq, true
	}
	e, err := s.parse(line)
	return e.Seq, err == nil
}

// seqPrefix reads the seq at the start of a canonical line, without checking the
// checksum.
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
