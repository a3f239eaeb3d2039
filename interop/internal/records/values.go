package records

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// Values yields the JSON objects and arrays of a file, in order. A value may be on
// one line or on many. It yields the errors of Records.
//
// Values reads a file line by line if the first line is a whole value. It reads any
// other file into memory, up to interop.MaxRecord.
func Values(src interop.Source) iter.Seq2[Record, error] {
	return split(src, func(s *lineReader, yield func(Record, error) bool) {
		s.arrays = true
		document, err := s.document()
		var rejected *RecordError
		switch {
		case errors.As(err, &rejected):
			yield(Record{Source: src.Name, Line: 1}, err)
		case err != nil:
			yield(Record{}, fmt.Errorf("read %s: %w", src.Name, err))
		case document != nil:
			s.values(document, yield)
		default:
			s.lines(yield)
		}
	})
}

// document reads the whole file if its values are on many lines. Else it returns nil,
// and the next read starts at the start of the file.
func (s *lineReader) document() ([]byte, error) {
	var begin bytes.Buffer
	in := io.LimitReader(s.in, maxRecord+1)
	lines := bufio.NewReaderSize(in, 64<<10)
	end := false
	for !end && len(bytes.TrimSpace(begin.Bytes())) == 0 {
		err := readLine(lines, &begin, s.total)
		if end = errors.Is(err, io.EOF); err != nil && !end {
			return nil, err
		}
	}
	if end && int64(begin.Len()) <= maxRecord && whole(begin.Bytes()) == nil {
		return begin.Bytes(), nil // one line
	}
	if int64(begin.Len()) <= maxRecord && whole(begin.Bytes()) != nil {
		grow(&begin, s.total)
		if _, err := begin.ReadFrom(lines); err != nil {
			return nil, err
		}
		err := whole(begin.Bytes())
		switch unfinished := errors.Is(err, io.ErrUnexpectedEOF); {
		case unfinished && int64(begin.Len()) > maxRecord:
			return nil, s.longDocument(int64(begin.Len()))
		case unfinished, err == nil:
			return begin.Bytes(), nil
		}
	}
	s.in = bufio.NewReaderSize(io.MultiReader(&begin, lines, s.in), 64<<10)
	return nil, nil
}

// longDocument reads the rest of a document that is too long, and returns its rejection.
func (s *lineReader) longDocument(begin int64) error {
	rest, err := io.Copy(io.Discard, s.in)
	if err != nil {
		return err
	}
	rec := Record{Source: s.source, Line: 1}
	return rec.Reject(&TooLongError{Bytes: begin + rest, Limit: maxRecord})
}

// grow makes room for the rest of a file of total bytes, once b is large: a buffer that
// doubles would take several times its size.
func grow(b *bytes.Buffer, total int64) {
	const large = 1 << 20
	rest := min(total, maxRecord) - int64(b.Len())
	if b.Len() >= large && rest > 0 && int64(b.Available()) < rest {
		b.Grow(int(rest) + bytes.MinRead)
	}
}

// readLine appends a line, or the rest of a file of total bytes, to b.
func readLine(in *bufio.Reader, b *bytes.Buffer, total int64) error {
	for {
		chunk, err := in.ReadSlice('\n')
		grow(b, total)
		b.Write(chunk)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// whole returns an error unless b starts with a whole value.
func whole(b []byte) error {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, byteOrderMark))
	if len(b) == 0 {
		return nil
	}
	if rawjson.Wider(b, MaxMembers) {
		return nil // record rejects it
	}
	_, err := rawjson.First(b, true)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// values yields the values in b.
func (s *lineReader) values(b []byte, yield func(Record, error) bool) {
	b = bytes.TrimRight(b, "\r\n")
	rest := bytes.TrimPrefix(b, byteOrderMark)
	s.number = 1
	for at := 0; ; {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) == 0 {
			return
		}
		start := len(b) - len(rest)
		s.number += int64(bytes.Count(b[at:start], []byte{'\n'}))
		at = start
		rec, size, err := s.record(rest, int64(start))
		rec.Kept = true
		if !yield(rec, err) || size == 0 {
			return
		}
		rest = rest[size:]
	}
}
