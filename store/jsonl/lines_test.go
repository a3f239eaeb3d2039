package jsonl

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// endlessReader is a file without a newline that counts the bytes read.
type endlessReader struct{ read int64 }

var errReadOn = errors.New("read on and on")

func (e *endlessReader) ReadAt(p []byte, _ int64) (int, error) {
	if e.read += int64(len(p)); e.read > 8*longestLine {
		return 0, errReadOn
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A damaged file may be one endless line. No operation reads it into memory.
func TestEndlessLine(t *testing.T) {
	const end = math.MaxInt64 / 2
	l := forwardLines{file: &endlessReader{}, end: end}
	if line, at, err := l.line(); !errors.Is(err, errTooLong) || at != 0 || len(line) > 2*longestLine {
		t.Errorf("forward: %d bytes at %d, %v", len(line), at, err)
	}
	b := backwardLines{file: &last{endlessReader{}, end}, end: end}
	if line, at, err := b.line(); !errors.Is(err, errTooLong) || at != end-int64(len(line)) || len(line) > 2*longestLine {
		t.Errorf("backward: %d bytes at %d, %v", len(line), at, err)
	}
}

// last is an endless line with a newline at the end.
type last struct {
	endlessReader
	end int64
}

func (l *last) ReadAt(p []byte, at int64) (int, error) {
	n, err := l.endlessReader.ReadAt(p, at)
	if at+int64(n) == l.end {
		p[n-1] = '\n'
	}
	return n, err
}

// A large hole in the middle of a session is reported as damage at its start. Events
// after it are readable.
func TestHugeHole(t *testing.T) {
	events := noteEvents(t, "s", 40)
	dir := t.TempDir()
	front, back := content(events[:20]), content(events[20:])
	hole := int64(8 * longestLine)
	write(t, dir, "s", front)
	f, err := os.OpenFile(filepath.Join(dir, "s.jsonl"), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(back, int64(len(front))+hole)
	must(t, errors.Join(err, f.Close()))
	s := open(t, dir)
	for _, span := range []eventlog.Span{{}, {From: 10}, {Backward: true}, {Backward: true, To: 25}} {
		var damage *eventlog.CorruptError
		for _, err = range s.Read(t.Context(), "s", span) {
		}
		if !errors.As(err, &damage) || damage.Offset != int64(len(front)) {
			t.Errorf("%+v: %v, want damage at byte %d", span, err, len(front))
		}
	}
	wantSeqs(t, s, "s", eventlog.Span{From: 25, To: 30}, between(25, 30)...)
}
