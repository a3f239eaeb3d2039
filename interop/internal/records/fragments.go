package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// mostAttempts is the number of places at which Fragments finds no object before it gives up: each
// attempt may scan the rest of the file.
const mostAttempts = 1000

var errDocument = errors.New("a document whose start is damaged: its whole records are read")

// Fragments yields the objects of a document whose start is damaged, in order: the whole objects
// whose bytes wanted accepts, and none within another one. The first error is the rejection of the
// document.
func Fragments(src interop.Source, wanted func(object []byte) bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r, f, err := src.Reader()
		if err != nil {
			yield(Record{}, fmt.Errorf("open %s: %w", src.Name, err))
			return
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
		if err != nil {
			yield(Record{}, fmt.Errorf("read %s: %w", src.Name, err))
			return
		}
		rec := Record{Source: src.Name, Line: 1}
		if int64(len(b)) > maxRecord {
			yield(rec, rec.Reject(&TooLongError{Bytes: max(src.Size, int64(len(b))), Limit: maxRecord}))
			return
		}
		if !yield(rec, rec.Reject(errDocument)) {
			return
		}
		fragments(rec, b, wanted, yield)
	}
}

func fragments(rec Record, b []byte, wanted func([]byte) bool, yield func(Record, error) bool) {
	rec.Kept = true
	for at, failed := 0, 0; failed < mostAttempts; {
		n := bytes.IndexByte(b[at:], '{')
		if n < 0 {
			return
		}
		rec.Line += int64(bytes.Count(b[at:at+n], []byte{'\n'}))
		at += n
		value, err := rawjson.First(b[at:], false)
		if err != nil || TooDeep(value) {
			failed++
		}
		if err != nil || TooDeep(value) || !wanted(value) {
			at++
			continue
		}
		rec.Offset, rec.Value, rec.Digest, rec.Size = int64(at), value, event.DigestOf(value), int64(len(value))
		if !yield(rec, nil) {
			return
		}
		rec.Line += int64(bytes.Count(value, []byte{'\n'}))
		at += len(value)
	}
}
