package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/convlog/convlog/event"
)

const (
	// maxAppend bounds the bytes of one append: 4 MiB of lines, which eventlog.Log
	// enforces, and their newlines.
	maxAppend = 4<<20 + 64<<10
	// window is how far before the end of a file an unfinished append can begin,
	// including the newline before it.
	window = maxAppend + 1
)

var (
	errUnfinished = errors.New("the append before this line is incomplete")
	errNoLine     = errors.New("no line ends in the last 4 MiB of the file")
)

// tail is the end of a file's complete appends. The bytes after end are a torn tail,
// unless damage is set.
type tail struct {
	end    int64       // offset after the last complete append; 0 if there is none
	last   event.Event // the last line before end
	lastAt int64       // the offset of last
	// damage is set if an unfinished write cannot explain the bad bytes. Then nothing
	// may be appended or truncated. Complete appends may follow the damage.
	damage error
}

// quickTail finds the tail of a file that ends with a complete append. It reads only
// that append and the line before it. ok is false if the file ends otherwise.
func (s *source) quickTail(size int64) (t tail, ok bool) {
	if size == 0 {
		return tail{}, true
	}
	l := backwardLines{file: s.file, end: size, chunk: page, buffer: s.borrow()}
	defer s.giveBack(&l.buffer)
	line, at, err := l.line()
	last, err := s.checkCopy(line, at, 0, err)
	if err != nil || last.More() != 0 {
		return t, false
	}
	t = tail{end: size, last: last, lastAt: at}
	for seq, more := last.Seq, 0; ; seq, more = seq-1, more+1 {
		before, _, err := s.readBack(&l)
		if errors.Is(err, io.EOF) {
			return t, true
		}
		if err != nil || before.Seq != seq-1 {
			return t, false
		}
		if before.More() != more+1 {
			return t, before.More() == 0
		}
	}
}

func (s *source) readBack(l *backwardLines) (event.Event, int64, error) {
	line, at, err := l.line()
	e, err := s.check(line, at, 0, err)
	return e, at, err
}

// findTail tries quickTail, then scanTail.
func (s *source) findTail(size int64) (tail, error) {
	if t, ok := s.quickTail(size); ok {
		return t, nil
	}
	return s.scanTail(size, 0, 0)
}

// scanTail checks the lines at the end of the file, as far back as an unfinished append
// can begin. If from is not 0, a complete append is known to end there, and seq is the
// seq of its last line.
func (s *source) scanTail(size, from, seq int64) (tail, error) {
	start := max(from, size-window)
	buf, free := windowBuffer(size - start)
	defer free()
	n, err := readFull(s.file, buf, start)
	if err != nil {
		return tail{}, err
	}
	v := tailScanner{source: s, buf: buf[:n], base: start}
	if start > from {
		i := bytes.IndexByte(v.buf, '\n')
		if i < 0 {
			return tail{end: size, damage: s.corrupt(start, 0, errNoLine)}, nil
		}
		v.at = i + 1
	} else {
		v.seq = seq
	}
	t := v.scan()
	if t.damage == nil && t.last.Seq == 0 && t.end > 0 {
		return s.lastBefore(t)
	}
	if t.last.Seq > 0 {
		t.last, err = s.parse(bytes.Clone(v.buf[t.lastAt-start : t.end-start-1])) // lets go of the window
	}
	return t, err
}

// windows are free buffers for scanTail.
var windows sync.Pool

// windowBuffer returns a buffer of size bytes, which the caller must free. Large buffers
// are reused: to clear new memory takes as long as to read the file into it.
func windowBuffer(size int64) (buf []byte, free func()) {
	if size <= largestChunk {
		return make([]byte, size), func() {}
	}
	spare, ok := windows.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, window)
		spare = &fresh
	}
	return (*spare)[:size], func() { windows.Put(spare) }
}

// lastBefore completes t if its last line begins before the scanned window.
func (s *source) lastBefore(t tail) (tail, error) {
	l := backwardLines{file: s.file, end: t.end, chunk: page}
	var err error
	t.last, t.lastAt, err = s.readBack(&l)
	if err == nil && t.last.More() != 0 {
		err = errUnfinished
	}
	if err != nil {
		t.damage = s.corrupt(l.end, 0, err)
	}
	return t, nil
}

// tailScanner scans the lines of a window.
type tailScanner struct {
	*source
	buf  []byte
	base int64 // offset of buf in the file
	at   int   // start of the next line in buf

	seq  int64 // seq of the previous line; 0 if unknown
	more int   // how many lines the current append still needs
	tail tail
}

func (v *tailScanner) scan() tail {
	v.tail.end = v.base + int64(v.at)
	for v.at < len(v.buf) {
		line, next, whole := v.line()
		e, err := v.checkLine(line, whole)
		if err != nil {
			v.judgeBadLine(line, whole, err)
			return v.tail
		}
		v.accept(e, next)
	}
	return v.tail // an append that is incomplete here is a torn tail
}

// line returns the line at v.at and the start of the next one. whole is false if the
// line has no newline.
func (v *tailScanner) line() (line []byte, next int, whole bool) {
	i := bytes.IndexByte(v.buf[v.at:], '\n')
	if i < 0 {
		return v.buf[v.at:], len(v.buf), false
	}
	return v.buf[v.at : v.at+i : v.at+i], v.at + i + 1, true
}

// checkLine checks the line at v.at against the lines before it.
func (v *tailScanner) checkLine(line []byte, whole bool) (event.Event, error) {
	if !whole {
		return event.Event{}, errUnterminated
	}
	due := int64(0)
	if v.seq > 0 {
		due = v.seq + 1
	}
	return v.check(line, v.base+int64(v.at), due, nil)
}

// accept records a good line.
func (v *tailScanner) accept(e event.Event, next int) {
	if v.more > 0 && e.More() != v.more-1 {
		v.setDamage(errUnfinished)
	}
	if e.More() == 0 {
		v.endAppend(e, next)
	}
	v.seq, v.more, v.at = e.Seq, e.More(), next
}

func (v *tailScanner) endAppend(e event.Event, next int) {
	v.tail.end = v.base + int64(next)
	v.tail.last, v.tail.lastAt = e, v.base+int64(v.at)
}

func (v *tailScanner) setDamage(cause error) {
	if v.tail.damage == nil {
		due := int64(0)
		if v.seq > 0 {
			due = v.seq + 1
		}
		v.tail.damage = v.corrupt(v.base+int64(v.at), due, cause)
	}
}

// judgeBadLine decides if the first bad line begins a torn tail or is damage. It is
// damage if a complete append follows: an unfinished write is the last write of a file.
//
// There are two exceptions. Blocks of one write can reach the disk in any order, so
// later lines of the same append, up to seq own, are no evidence. And after a hole
// everything belongs to the torn tail, because one write may hold many appends.
func (v *tailScanner) judgeBadLine(bad []byte, whole bool, cause error) {
	_, err := v.parse(bad)
	if whole && (err == nil || isWholeLine(err)) {
		v.setDamage(cause)
	} else if v.isHole(bad) {
		return
	}
	own := v.seq + int64(v.more) // last seq of the current append
	was, first := v.tail, v.at
	for v.at < len(v.buf) {
		line, next, whole := v.line()
		e, err := v.parse(line)
		switch {
		case !whole:
		case err != nil && isWholeLine(err):
			v.endAppend(event.Event{}, next)
			v.markBadLine(first, cause)
		case err == nil && e.More() == 0 && (v.more == 0 || e.Seq <= v.seq || e.Seq > own):
			v.endAppend(e, next)
			v.markBadLine(first, cause)
		}
		v.at = next
	}
	if v.tail.damage == nil {
		v.tail = was
	}
}

// markBadLine sets damage at the bad line that starts at first.
func (v *tailScanner) markBadLine(first int, cause error) {
	at := v.at
	v.at = first
	v.setDamage(fmt.Errorf("%w, and complete appends follow", cause))
	v.at = at
}
