package interop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/convlog/convlog/internal/rawjson"
)

// Values yields the JSON objects and arrays of a file, in order. A value may be on
// one line or on many. It yields the errors of Records.
//
// Values reads a file line by line if the first line is a whole value. It reads any
// other file into memory.
func Values(src Source) iter.Seq2[Record, error] {
	return split(src, func(s *lineReader, yield func(Record, error) bool) {
		s.arrays = true
		document, err := s.document()
		switch {
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
	var first []byte
	for len(bytes.TrimSpace(first)) == 0 {
		line, err := s.in.ReadBytes('\n')
		first = append(first, line...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if whole(first) == nil {
		s.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(first), s.in), 64<<10)
		return nil, nil
	}
	rest, err := io.ReadAll(s.in)
	if err != nil {
		return nil, err
	}
	all := append(first, rest...)
	if err := whole(all); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return all, nil
	}
	s.in = bufio.NewReader(bytes.NewReader(all))
	return nil, nil
}

// whole returns an error unless b starts with a whole value.
func whole(b []byte) error {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, byteOrderMark))
	if len(b) == 0 {
		return nil
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
		if !yield(rec, err) || size == 0 {
			return
		}
		rest = rest[size:]
	}
}
