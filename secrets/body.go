package secrets

import (
	"bytes"
	"io"
	"unicode/utf8"
)

const (
	// bodyChunk is how much of a body is examined at a time.
	bodyChunk = 256 << 10
	// bodyMargin is how far around an offset a match may lie.
	bodyMargin = maxReach + before + utf8.UTFMax
	// bodyProbe is how many bytes decide whether a body is text.
	bodyProbe = 64 << 10
)

// bodyReader reads a body of any length, and masks its secrets if mask is true. It
// reads a body that is not text as it is.
type bodyReader struct {
	scanner *Scanner
	body    io.Reader
	mask    bool
	each    func(rule string) error

	buf    []byte
	done   int    // the bytes of buf that are in out already
	out    []byte // not yet read by the caller
	begun  bool
	binary bool
	err    error // of body, or of each
}

func newBodyReader(s *Scanner, body io.Reader, mask bool, each func(rule string) error) *bodyReader {
	return &bodyReader{scanner: s, body: body, mask: mask, each: each}
}

func (b *bodyReader) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.next()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// next examines the next part of the body. It keeps bodyMargin bytes before and after
// the part, so that a secret is found wherever the parts meet.
func (b *bodyReader) next() {
	if b.binary {
		b.buf = b.buf[:cap(b.buf)]
		var n int
		n, b.err = b.body.Read(b.buf)
		b.out = b.buf[:n]
		return
	}
	if b.done > bodyMargin {
		b.buf = append(b.buf[:0], b.buf[b.done-bodyMargin:]...)
		b.done = bodyMargin
	}
	b.fill()
	if !b.begun {
		b.begun = true
		if b.binary = !isText(b.buf[:min(len(b.buf), bodyProbe)]); b.binary {
			b.out, b.buf = b.buf, make([]byte, 0, bodyChunk)
			return
		}
	}
	b.examine()
}

// fill reads until a part and its margin are in the buffer, or the body ends.
func (b *bodyReader) fill() {
	want := b.done + bodyChunk + bodyMargin
	if cap(b.buf) < want {
		b.buf = append(make([]byte, 0, want+bodyMargin), b.buf...)
	}
	for len(b.buf) < want && b.err == nil {
		var n int
		n, b.err = b.body.Read(b.buf[len(b.buf):want])
		b.buf = b.buf[:len(b.buf)+n]
	}
}

// examine moves a part of the buffer to out, with masks.
func (b *bodyReader) examine() {
	limit := len(b.buf)
	if b.err == nil {
		limit -= bodyMargin
	}
	at := b.done
	b.out = b.out[:0:0]
	for _, f := range b.scanner.findEscaped(b.buf) {
		if f.Start < at {
			continue // it is in out already
		}
		if f.Start >= limit {
			break
		}
		if err := b.each(f.Rule); err != nil {
			b.out, b.err = nil, err
			return
		}
		if b.mask {
			b.out = append(append(b.out, b.buf[at:f.Start]...), b.scanner.masks[f.Rule]...)
			at = f.End
		}
	}
	if limit > at {
		b.out = append(b.out, b.buf[at:limit]...)
		at = limit
	}
	b.done = at
}

// isText reports whether the beginning of a body is UTF-8 without NUL.
func isText(start []byte) bool {
	for n := 0; n < utf8.UTFMax && len(start) > 0; n++ { // the last character may be incomplete
		if r, size := utf8.DecodeLastRune(start); r != utf8.RuneError || size > 1 {
			break
		}
		start = start[:len(start)-1]
	}
	return utf8.Valid(start) && bytes.IndexByte(start, 0) < 0
}
