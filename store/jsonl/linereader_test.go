package jsonl

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// readLines returns the events of ReadLines in the order of a search.
func readLines(t *testing.T, s *Store, session string, span eventlog.Span, wanted func(line []byte) bool) (events []event.Event, err error) {
	t.Helper()
	span.Backward, span.Transient = true, true
	for e, err := range s.ReadLines(t.Context(), session, span, wanted) {
		if err != nil {
			return events, err
		}
		events = append(events, e.Clone())
	}
	return events, nil
}

// ReadLines yields the wanted events of a span, and few others: of small files, which it holds
// in memory, and of large ones, at any end of a span.
func TestReadLines(t *testing.T) {
	for _, n := range []int{1, 2, 3, 60, 2000} {
		events := noteEvents(t, "s", n)
		dir := t.TempDir()
		write(t, dir, "s", content(events))
		s := open(t, dir)
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for range 20 {
			picked := map[string]bool{}
			for i := range events {
				picked[string(events[i].Line())] = random.IntN(1+n/4) == 0
			}
			span := eventlog.Span{From: random.Int64N(int64(n) + 1), To: random.Int64N(int64(n) + 1)}
			want, err := read(t, s, "s", eventlog.Span{From: span.From, To: span.To, Backward: true})
			must(t, err)
			got, err := readLines(t, s, "s", span, func(line []byte) bool { return picked[string(line)] })
			must(t, err)
			want = slices.DeleteFunc(want, func(seq int64) bool { return !picked[string(events[seq-1].Line())] })
			for _, e := range got {
				if !bytes.Equal(e.Line(), events[e.Seq-1].Line()) {
					t.Fatalf("event %d has another line", e.Seq)
				}
			}
			got = slices.DeleteFunc(got, func(e event.Event) bool { return !picked[string(e.Line())] })
			if !slices.EqualFunc(got, want, func(e event.Event, seq int64) bool { return e.Seq == seq }) {
				t.Fatalf("%d events, %+v: got %d events, want %v", n, span, len(got), want)
			}
		}
	}
}

// Damage in a line that is left out is reported.
func TestReadLinesChecksWhatItLeavesOut(t *testing.T) {
	for _, n := range []int{30, 2000} {
		events := noteEvents(t, "s", n)
		file := content(events)
		for range 20 {
			at := rand.IntN(len(file) - 1)
			damaged := bytes.Clone(file)
			if damaged[at] ^= 1; damaged[at] == '\n' || file[at] == '\n' {
				continue
			}
			dir := t.TempDir()
			write(t, dir, "s", damaged)
			s := open(t, dir)
			_, readErr := read(t, s, "s", eventlog.Span{Backward: true})
			_, err := readLines(t, s, "s", eventlog.Span{}, func([]byte) bool { return false })
			if errors.Is(err, eventlog.ErrCorrupt) != errors.Is(readErr, eventlog.ErrCorrupt) {
				t.Errorf("%d events, bit at byte %d: %v, of Read: %v", n, at, err, readErr)
			}
		}
	}
}

// A search of a store reads each byte of a small file once, and the last 4 MiB of a larger
// file twice in the life of the process: for holes, and for the lines.
func TestReadLinesReadsEachByteOnce(t *testing.T) {
	for _, n := range []int{60, 2000} {
		file := content(noteEvents(t, "s", n))
		dir := t.TempDir()
		write(t, dir, "s", file)
		c := &counting{FS: Dir(dir)}
		s := open(t, dir, Options{FS: c})
		const few = 256 << 10
		for first, most := range []int{2*len(file) + few, len(file) + few} {
			if len(file) <= maxHeld {
				most = len(file)
			}
			c.bytes = 0
			_, err := readLines(t, s, "s", eventlog.Span{}, func([]byte) bool { return false })
			must(t, err)
			if c.bytes > most {
				t.Errorf("search %d read %d bytes of a file of %d", first+1, c.bytes, len(file))
			}
		}
	}
}
