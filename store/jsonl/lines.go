package jsonl

import (
	"bytes"
	"errors"
	"io"
)

// Chunks grow from the smallest to the largest as a reading goes on, so that a
// short one reads little and a long one makes few calls. A chunk is never
// reused: events share its bytes.
const (
	page          = 4 << 10
	smallestChunk = 32 << 10
	largestChunk  = 256 << 10
)

// longestLine is how much of a line is looked at as a whole. Lines of one append
// are shorter together; a file that another program damaged may have none that
// ends, and is not read into memory.
const longestLine = 2 * maxAppend

// chunk is how much is read next; zero is smallestChunk.
type chunk int

func (c *chunk) take() int {
	size := int(*c)
	if size == 0 {
		size = smallestChunk
	}
	*c = chunk(min(2*size, largestChunk))
	return size
}

var (
	errUnterminated = errors.New("line has no end")
	errTooLong      = errors.New("line is longer than any append")
)

// forward yields the lines of file from next up to end, oldest first.
type forward struct {
	file io.ReaderAt
	next int64 // offset of the line that comes next
	end  int64

	buf   []byte // the bytes from next on that were read
	chunk chunk
}

// line gives the next line without its newline, and its offset; io.EOF at end.
// What stands between the last newline and end is errUnterminated; errTooLong
// gives a part of a line. Neither goes on by itself.
func (l *forward) line() (line []byte, at int64, err error) {
	at = l.next
	for searched := 0; ; {
		if i := bytes.IndexByte(l.buf[searched:], '\n'); i >= 0 {
			i += searched
			line, l.buf = l.buf[:i:i], l.buf[i+1:]
			l.next += int64(i) + 1
			return line, at, nil
		}
		searched = len(l.buf)
		if at+int64(searched) >= l.end {
			break
		}
		if searched >= longestLine {
			return l.buf, at, errTooLong
		}
		if err := l.fill(); err != nil {
			return nil, at, err
		}
	}
	if len(l.buf) == 0 {
		return nil, at, io.EOF
	}
	return l.buf, at, errUnterminated
}

// skip goes on n bytes behind a line that was given with an error.
func (l *forward) skip(n int) {
	l.buf = l.buf[n:]
	l.next += int64(n)
}

// fill reads the next chunk behind what is left of the last one. A file that
// turns out shorter moves end.
func (l *forward) fill() error {
	have := len(l.buf)
	from := l.next + int64(have)
	// The whole buffer is a chunk, so that the allocator rounds nothing up.
	want := min(int64(max(l.chunk.take()-have, have)), l.end-from)
	buf := make([]byte, have+int(want))
	copy(buf, l.buf)
	n, err := readFull(l.file, buf[have:], from)
	if err != nil {
		return err
	}
	l.buf = buf[:have+n]
	if int64(n) < want {
		l.end = from + int64(n)
	}
	return nil
}

// backward yields the lines of file that end at end or before, newest first.
type backward struct {
	file io.ReaderAt
	end  int64 // where the line that comes next ends, newline included

	buf   []byte // the bytes before end that were read
	ends  []int  // where newlines are in buf
	chunk chunk
}

// line gives the line before, without its newline, and its offset; io.EOF at
// the start of the file, errUnterminated if end does not follow a newline, and
// errTooLong where none is found before.
func (l *backward) line() (line []byte, at int64, err error) {
	if l.end == 0 {
		return nil, 0, io.EOF
	}
	for {
		if n := len(l.buf); n > 0 {
			if l.buf[n-1] != '\n' {
				return l.buf, l.end - int64(n), errUnterminated
			}
			i, last := 0, len(l.ends)-1
			if last > 0 {
				i = l.ends[last-1] + 1
			}
			if i > 0 || int64(n) == l.end {
				line, l.buf, l.ends = l.buf[i:n-1:n-1], l.buf[:i], l.ends[:last]
				l.end -= int64(n - i)
				return line, l.end, nil
			}
			if n >= longestLine {
				return l.buf, l.end - int64(n), errTooLong
			}
		}
		if err := l.fill(); err != nil {
			return nil, l.end, err
		}
	}
}

// fill reads a chunk that ends at end. The start of a line that stood in the
// last chunk is read again.
func (l *backward) fill() error {
	size := min(int64(max(l.chunk.take(), 2*len(l.buf))), l.end)
	buf := make([]byte, size)
	n, err := readFull(l.file, buf, l.end-size)
	if err != nil {
		return err
	}
	if int64(n) < size {
		return errUnterminated // the file was cut meanwhile
	}
	l.buf, l.ends = buf, newlines(l.ends[:0], buf)
	return nil
}

// newlines appends where the newlines are in b. Looking for them from the front
// is several times as fast as from the back.
func newlines(to []int, b []byte) []int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return to
		}
		at += i
		to = append(to, at)
	}
}
