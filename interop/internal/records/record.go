// Package records parses the files of other programs into records, and makes events of
// records. An event says in its metadata which record it was made of.
package records

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// Record is one JSON object of a file of lines.
type Record struct {
	Source string
	Line   int64 // physical line, from 1
	Offset int64 // byte offset in the file
	// Value is the object. For a rejected record that is cut off it is the bytes up
	// to the cut. The next record reuses the bytes, unless Kept is set.
	Value jsontext.Value
	Kept  bool
	// Digest and Size describe the record's bytes in the file.
	Digest event.Digest
	Size   int64
	// Key is the importer's digest of the record, where Digest is too strict to recognize
	// the record in another version of the file; empty if Digest recognizes it.
	Key event.Digest
	// Repaired says that Value has U+FFFD in place of invalid Unicode in the file.
	Repaired bool
}

// MaxDepth is the deepest nesting of a record. It is below 1,024, the limit of an event, because
// an event adds some levels around its record.
const MaxDepth = 1000

// maxRecord is interop.MaxRecord; tests change it.
var maxRecord int64 = interop.MaxRecord

// TooLongError is the cause that rejects a record over interop.MaxRecord.
type TooLongError struct{ Bytes, Limit int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%d bytes, over the limit of %d bytes", e.Bytes, e.Limit)
}

// MaxMembers is the most members of a record on a line, and of a record whose names a scanner
// cannot compare. A split member needs several times its bytes of memory, and no program writes
// as many.
const MaxMembers = 100_000

var (
	errWide        = fmt.Errorf("an object with more than %d members", MaxMembers)
	errWideInvalid = fmt.Errorf("an object with more than %d members, in which a name repeats or JSON is not valid", MaxMembers)
)

var errDeep = fmt.Errorf("nested in more than %d levels", MaxDepth)

// TooDeep reports whether a value is nested in more than MaxDepth levels.
func TooDeep(v jsontext.Value) bool { return rawjson.Deeper(v, MaxDepth) }

// Origin is the record's place in its file, for the metadata of an event with a part of
// the record.
func (r *Record) Origin(part int) Origin {
	return Origin{Source: strings.ToValidUTF8(r.Source, "\uFFFD"), Line: r.Line, Offset: r.Offset, Part: part}
}

// Whole is the origin of an event with all of the record. A redaction of the event erases
// the digests with the record.
func (r *Record) Whole(part int) Origin {
	o := r.Origin(part)
	o.Bytes, o.Digest, o.Key = r.Size, r.Digest, r.Key
	return o
}

// Recognized is the digest that recognizes the record: Key or Digest.
func (r *Record) Recognized() event.Digest { return cmp.Or(r.Key, r.Digest) }

// Reject makes the error that rejects the record.
func (r *Record) Reject(cause error) *RecordError {
	return &RecordError{Source: r.Source, Line: r.Line, Offset: r.Offset, Cause: cause}
}

// Conflict makes the error that the log's session has another history than the
// record's file.
func (r *Record) Conflict(session, reason string) *HistoryError {
	return &HistoryError{Session: session, Source: r.Source, Line: r.Line, Offset: r.Offset, Reason: reason}
}

// Clone copies the record and its value. The next record does not reuse the copy.
func (r *Record) Clone() Record {
	kept := *r
	kept.Value = r.Value.Clone()
	return kept
}

// Records yields the JSON objects of a file of lines, in order. A line may have
// several objects. Records ignores empty lines, carriage returns and a byte order
// mark. It yields a *RecordError for a record that cannot be parsed and for a line over
// interop.MaxRecord, and continues with the next record of the line or the next line. Any other error ends the sequence.
func Records(src interop.Source) iter.Seq2[Record, error] {
	return split(src, (*lineReader).lines)
}

// Lines yields the lines of a source, each with its newline. The next line reuses
// the bytes. It leaves out lines over interop.MaxRecord. An error ends the sequence.
func Lines(src interop.Source) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r, f, err := src.Reader()
		if err != nil {
			yield(nil, fmt.Errorf("open %s: %w", src.Name, err))
			return
		}
		defer f.Close()
		lines, release := linesOf(src, r)
		defer release()
		for lines.next() {
			if !lines.tooLong() && !yield(lines.buf, nil) {
				return
			}
		}
		if lines.err != nil {
			yield(nil, fmt.Errorf("read %s after line %d: %w", src.Name, lines.number, lines.err))
		}
	}
}

// split opens a source and yields the records of read.
func split(src interop.Source, read func(s *lineReader, yield func(Record, error) bool)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r, f, err := src.Reader()
		if err != nil {
			yield(Record{}, fmt.Errorf("open %s: %w", src.Name, err))
			return
		}
		defer f.Close()
		lines, release := linesOf(src, r)
		defer release()
		read(lines, yield)
	}
}

// buffers are the read buffers of files that are done. An import reads each file several
// times.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// linesOf reads r, the content of src. After release nothing may be read.
func linesOf(src interop.Source, r io.Reader) (lines *lineReader, release func()) {
	in := buffers.Get().(*bufio.Reader)
	in.Reset(r)
	return &lineReader{source: src.Name, total: src.Size, in: in}, func() {
		in.Reset(nil)
		buffers.Put(in)
	}
}

// lineReader reads a file line by line.
type lineReader struct {
	source string
	in     *bufio.Reader
	total  int64  // size of the file; 0 if unknown
	buf    []byte // the line, with its newline if it has one; empty if it is too long
	size   int64  // of the line
	start  int64  // offset of the line
	number int64
	arrays bool // accept arrays as well as objects
	err    error
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// lines yields the objects of all lines.
func (s *lineReader) lines(yield func(Record, error) bool) {
	for s.next() {
		read := s.line
		if s.tooLong() {
			read = s.rejectLong
		}
		if !read(yield) {
			return
		}
	}
	if s.err != nil {
		yield(Record{}, fmt.Errorf("read %s after line %d: %w", s.source, s.number, s.err))
	}
}

// next reads the next line into s.buf.
func (s *lineReader) next() bool {
	s.start += s.size
	s.buf, s.size = s.buf[:0], 0
	for {
		chunk, err := s.in.ReadSlice('\n')
		s.size += int64(len(chunk))
		s.keep(chunk)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			s.err = err
			return false
		}
		break
	}
	s.number++
	return s.size > 0
}

// keep appends a chunk to the line, unless the line is too long. The buffer doubles, up to
// the rest of the file: many small steps would leave several times the line to the
// garbage collector.
func (s *lineReader) keep(chunk []byte) {
	if s.tooLong() {
		s.buf = nil
		return
	}
	if need := len(s.buf) + len(chunk); need > cap(s.buf) {
		most := 2 * cap(s.buf)
		if s.total > 0 {
			most = int(min(int64(most), max(s.total-s.start, 0)))
		}
		s.buf = append(make([]byte, 0, max(most, need)), s.buf...)
	}
	s.buf = append(s.buf, chunk...)
}

// tooLong reports whether the line is over the limit.
func (s *lineReader) tooLong() bool { return s.size > maxRecord }

// rejectLong yields the rejection of a line that is too long.
func (s *lineReader) rejectLong(yield func(Record, error) bool) bool {
	rec := Record{Source: s.source, Line: s.number, Offset: s.start, Size: s.size}
	return yield(rec, rec.Reject(&TooLongError{Bytes: s.size, Limit: maxRecord}))
}

// line yields the objects of the line in s.buf.
func (s *lineReader) line(yield func(Record, error) bool) bool {
	line := bytes.TrimRight(s.buf, "\r\n")
	rest, offset := line, s.start
	if offset == 0 {
		rest = bytes.TrimPrefix(rest, byteOrderMark)
	}
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) == 0 {
			return true
		}
		offset = s.start + int64(len(line)-len(rest))
		rec, size, err := s.record(rest, offset)
		if size == 0 {
			size = s.recordAfter(rest, err)
		}
		if !yield(rec, err) {
			return false
		}
		if size == 0 {
			return true
		}
		rest = rest[size:]
	}
}

// record parses the value at the start of b. b does not end in a line break. size is
// 0 if the start of the next value is unknown.
func (s *lineReader) record(b []byte, offset int64) (rec Record, size int, err error) {
	rec = Record{Source: s.source, Line: s.number, Offset: offset}
	if err := s.tooWide(b); err != nil {
		return rec, 0, rec.Reject(err)
	}
	value, err := rawjson.First(b, false)
	if err != nil {
		if value, repaired := rawjson.First(b, true); repaired == nil {
			return s.repair(rec, value)
		}
		rec.Value = b
		return rec, 0, rec.Reject(plain(err, b))
	}
	if !s.accepts(value.Kind()) {
		return rec, len(value), rec.Reject(fmt.Errorf("a JSON %s, not an object", kindName(value.Kind())))
	}
	if TooDeep(value) {
		return rec, len(value), rec.Reject(errDeep)
	}
	rec.Value, rec.Digest, rec.Size = value, event.DigestOf(value), int64(len(value))
	return rec, len(value), nil
}

// tooWide returns an error if the object at the start of b has more members than the reader
// accepts.
func (s *lineReader) tooWide(b []byte) error {
	switch {
	case !rawjson.Wider(b, MaxMembers):
		return nil
	case !s.arrays:
		return errWide
	case !rawjson.Begins(b):
		return errWideInvalid
	default:
		return nil
	}
}

// recordAfter returns the offset of the record after a damaged one on the same line: after a run
// of NULs, or where a truncated record ends and the next one begins. It is 0 if there is none.
func (s *lineReader) recordAfter(b []byte, damage error) int {
	at := faultIn(b, damage)
	if at < 0 || at >= len(b) {
		return 0
	}
	if b[at] == 0 {
		for at < len(b) && b[at] == 0 {
			at++
		}
		next := bytes.IndexByte(b[at:], '{')
		if next < 0 {
			return 0
		}
		at += next
	} else {
		at = bytes.LastIndexByte(b[:min(at+2, len(b))], '{') // of a text or an escape, it is the end
	}
	if at <= 0 {
		return 0
	}
	if value, err := rawjson.First(b[at:], true); err != nil || !s.accepts(value.Kind()) {
		return 0
	}
	return at
}

// faultIn returns the offset of the byte that makes a record invalid; -1 if it is unknown.
func faultIn(b []byte, damage error) int {
	if b[0] == 0 {
		return 0
	}
	var fault *jsontext.SyntacticError
	if !errors.As(damage, &fault) || errors.Is(damage, io.ErrUnexpectedEOF) {
		return -1
	}
	return int(fault.ByteOffset)
}

func (s *lineReader) accepts(k jsontext.Kind) bool { return k == '{' || s.arrays && k == '[' }

// repair parses a value whose only fault is invalid Unicode.
func (s *lineReader) repair(rec Record, value jsontext.Value) (Record, int, error) {
	clean := value.Clone()
	err := clean.Compact(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(false))
	if err != nil || !clean.IsValid() || !s.accepts(clean.Kind()) {
		return rec, len(value), rec.Reject(errors.New("text that is no valid Unicode"))
	}
	if TooDeep(clean) {
		return rec, len(value), rec.Reject(errDeep)
	}
	rec.Value, rec.Digest, rec.Size, rec.Repaired = clean, event.DigestOf(value), int64(len(value)), true
	return rec, len(value), nil
}

// plain is the reason of a rejection.
func plain(err error, b []byte) error {
	if n := len(b) - len(bytes.TrimLeft(b, "\x00")); n > 0 {
		return fmt.Errorf("%d bytes that are zero, as a loss of power leaves them", n)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("cut off after %d bytes: %w", len(b), io.ErrUnexpectedEOF)
	}
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	default:
		return "literal"
	}
}
