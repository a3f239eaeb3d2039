package jsonl

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// noteEvents returns appends with lines of very different lengths.
func noteEvents(t testing.TB, session string, n int) []event.Event {
	t.Helper()
	r := new(recorder)
	log := eventlog.Open(r, eventlog.Options{SpillOver: -1})
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := 0; i < n; {
		batch := []event.Event{note(strings.Repeat("y", 1<<random.IntN(14)))}
		for i += 1; i < n && random.IntN(3) == 0; i++ {
			batch = append(batch, note("of the same append"))
		}
		_, err := log.Append(t.Context(), session, eventlog.Any(), batch...)
		must(t, err)
	}
	return r.events
}

func between(from, to int64) (seqs []int64) {
	for seq := from; seq <= to; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

func backwards(seqs []int64) []int64 {
	var back []int64
	for i := len(seqs) - 1; i >= 0; i-- {
		back = append(back, seqs[i])
	}
	return back
}

func TestSpans(t *testing.T) {
	const n = 400
	events := noteEvents(t, "s", n)
	dir := t.TempDir()
	write(t, dir, "s", content(events))
	s := open(t, dir)
	for _, from := range []int64{0, 1, 2, 77, 200, n - 1, n, n + 1, n + 100} {
		for _, to := range []int64{0, 1, 2, 78, 300, n - 1, n, n + 100} {
			last := int64(n)
			if to > 0 {
				last = min(to, n)
			}
			want := between(max(from, 1), last)
			wantSeqs(t, s, "s", eventlog.Span{From: from, To: to}, want...)
			wantSeqs(t, s, "s", eventlog.Span{From: from, To: to, Backward: true}, backwards(want)...)
			limit := min(5, len(want))
			wantSeqs(t, s, "s", eventlog.Span{From: from, To: to, Limit: 5}, want[:limit]...)
			wantSeqs(t, s, "s", eventlog.Span{From: from, To: to, Limit: 5, Backward: true}, backwards(want)[:limit]...)
		}
	}
	i := 0
	for e, err := range s.Read(t.Context(), "s", eventlog.Span{}) {
		must(t, err)
		if !bytes.Equal(e.Line(), events[i].Line()) {
			t.Fatalf("line %d differs", i)
		}
		i++
	}
}

// counting is an FS that counts the reads, and their bytes.
type counting struct {
	FS
	calls, bytes int
}

type countingFile struct {
	File
	fs *counting
}

func (c *counting) Open(name string, flag int) (File, error) {
	f, err := c.FS.Open(name, flag)
	return &countingFile{File: f, fs: c}, err
}

func (c *countingFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.File.ReadAt(p, at)
	c.fs.calls++
	c.fs.bytes += n
	return n, err
}

// A read of a span reads only the span's part of the file.
func TestSpansReadLittle(t *testing.T) {
	events := noteEvents(t, "s", 2000)
	dir := t.TempDir()
	write(t, dir, "s", content(events))
	c := &counting{FS: Dir(dir)}
	s := open(t, dir, Options{FS: c})
	_, err := read(t, s, "s", eventlog.Span{Limit: 1, Backward: true}) // the first read scans for holes
	must(t, err)
	for _, span := range []eventlog.Span{
		{Limit: 3}, {Limit: 3, Backward: true}, {From: 1000, Limit: 3}, {To: 1000, Backward: true, Limit: 3}, {From: 1998},
	} {
		c.bytes = 0
		_, err := read(t, s, "s", span)
		must(t, err)
		if c.bytes > 200<<10 {
			t.Errorf("%+v read %d bytes of %d", span, c.bytes, len(content(events)))
		}
	}
}

// A read of the newest events does not search the file for them.
func TestNewestReadsAreFew(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s", content(noteEvents(t, "s", 2000)))
	c := &counting{FS: Dir(dir)}
	s := open(t, dir, Options{FS: c})
	_, err := read(t, s, "s", eventlog.Span{Limit: 1, Backward: true}) // the first read scans for holes
	must(t, err)
	for _, span := range []eventlog.Span{{From: 1999}, {From: 1999, To: 1999}, {To: 2000, Backward: true, Limit: 2}} {
		c.calls = 0
		_, err := read(t, s, "s", span)
		must(t, err)
		if c.calls > 8 {
			t.Errorf("%+v made %d reads", span, c.calls)
		}
	}
}

// Damaged lines near the start and near the end do not hide the events between them.
func TestDamageNearTheEndHidesNoEarlierEvent(t *testing.T) {
	dir := t.TempDir()
	file := content(noteEvents(t, "s", 2000))
	for _, from := range []int{0, len(file) - 256<<10, len(file) - 64<<10, len(file) - 16<<10} {
		line := from + bytes.IndexByte(file[from:], '\n') + 1
		copy(file[line:], "damage")
	}
	write(t, dir, "s", file)
	s := open(t, dir)
	wantSeqs(t, s, "s", eventlog.Span{From: 1000, To: 1000}, 1000)
	wantSeqs(t, s, "s", eventlog.Span{To: 1000, Backward: true, Limit: 1}, 1000)
}

// The first append after opening reads the end of the file twice, as far back as a power
// loss can damage it, and the next append reads 8 bytes. Neither grows with the session
// beyond that.
func TestAppendsReadLittle(t *testing.T) {
	for _, n := range testsize.Pick([]int{6000}, []int{24_000}, []int{6000, 24_000}) {
		dir := t.TempDir()
		file := content(noteEvents(t, "s", n))
		write(t, dir, "s", file)
		c := &counting{FS: Dir(dir)}
		log := eventlog.Open(open(t, dir, Options{FS: c, NoSync: true}))
		for i, most := range []int{2*window + 256<<10, crcLen} {
			c.bytes = 0
			_, err := log.Append(t.Context(), "s", eventlog.Any(), note("one more"))
			must(t, err)
			if c.bytes > most {
				t.Errorf("append %d to %d bytes reads %d bytes, want at most %d", i+1, len(file), c.bytes, most)
			}
		}
	}
}

// A transient read allocates its buffer only, however long the session is.
func TestTransientReadsAllocateNothingThatGrows(t *testing.T) {
	n := testsize.Pick(8_000, 8_000, 20_000)
	few, events := noteEvents(t, "s", n/4), noteEvents(t, "s", n)
	more := int64(len(content(events)) - len(content(few)))
	for _, r := range []eventlog.Range{eventlog.All().Transient(), eventlog.All().Backward().Transient()} {
		less := allocatedBy(t, few, r)
		if got := allocatedBy(t, events, r) - less; got > more/4 {
			t.Errorf("%+v: %d bytes more of events allocate %d bytes more", r, more, got)
		}
	}
}

// allocatedBy returns the number of bytes that a read of a session allocates.
func allocatedBy(t *testing.T, events []event.Event, r eventlog.Range) int64 {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "s", content(events))
	log := eventlog.Open(open(t, dir))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for _, err := range log.Read(t.Context(), "s", r) {
		must(t, err)
		n++
	}
	runtime.ReadMemStats(&after)
	if n != len(events) {
		t.Errorf("%+v: got %d events, want %d", r, n, len(events))
	}
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Reads from the middle and from the end report the same damage as a read from the
// start.
func TestDamageIsLocatedFromAnywhere(t *testing.T) {
	events := noteEvents(t, "s", 300)
	at := int64(len(content(events[:150])))
	for name, hit := range map[string]int64{"in the seq": 30, "in the data": 200, "in the newline before": -1} {
		file := content(events)
		file[at+hit] ^= 1
		want, due := at, int64(151)
		if hit < 0 {
			want, due = int64(len(content(events[:149]))), 150
		}
		dir := t.TempDir()
		write(t, dir, "s", file)
		s := open(t, dir)
		for _, span := range []eventlog.Span{{}, {From: 100}, {From: 140}, {From: due}, {Backward: true}, {To: 200, Backward: true}} {
			_, err := read(t, s, "s", span)
			var corrupt *eventlog.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset != want || corrupt.Seq != due {
				t.Errorf("damage %s, reading %+v: %v, want byte %d seq %d", name, span, err, want, due)
			}
		}
		wantSeqs(t, s, "s", eventlog.Span{Limit: 5, Backward: true}, 300, 299, 298, 297, 296)
		wantSeqs(t, s, "s", eventlog.Span{From: 250, To: 252}, 250, 251, 252)
	}
}

// Readers see every acknowledged append and no unfinished one, while two stores write.
func TestReadersDuringAppends(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, Options{FS: newFaults(dir)}), open(t, dir, Options{FS: newFaults(dir)})
	events := noteEvents(t, "s", 300)
	appendAll(t, a, "s", event.Head{}, events[:1])
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, s := range []*Store{a, b} {
		wg.Go(func() {
			for ctx.Err() == nil {
				last := int64(0)
				for e, err := range s.Read(t.Context(), "s", eventlog.Span{}) {
					if err != nil || e.Seq != last+1 {
						t.Errorf("seq %d after %d: %v", e.Seq, last, err)
						return
					}
					last = e.Seq
					if e.Seq == int64(len(events)) {
						return
					}
				}
				if last > 0 && events[last-1].More() != 0 {
					t.Errorf("a read ended at %d, within an append", last)
				}
			}
		})
	}
	for i := 1; i < len(events); {
		s := a
		if i%2 == 0 {
			s = b
		}
		n := events[i].More() + 1
		must(t, s.Append(t.Context(), "s", head(events[:i]), events[i:i+n], false))
		seqs, err := read(t, a, "s", eventlog.Span{Backward: true, Limit: 1})
		must(t, err)
		if seqs[0] != int64(i+n) {
			t.Fatalf("read %v after append %d", seqs, i+n)
		}
		i += n
	}
}

// An append that is written but not synced is not readable.
func TestUnacknowledgedIsNotShown(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{FS: f})
	appendAll(t, s, "s", event.Head{}, events[:1])
	var seen []int64
	var during uint64
	before, err := s.Version(t.Context(), "s")
	must(t, err)
	f.syncing = func() {
		seen, _ = read(t, s, "s", eventlog.Span{})
		during, _ = s.Version(t.Context(), "s")
	}
	appendAll(t, s, "s", head(events[:1]), events[1:])
	if len(seen) != 1 {
		t.Errorf("while syncing seqs %v were read, want only 1", seen)
	}
	after, err := s.Version(t.Context(), "s")
	must(t, err)
	if before == after || during == after {
		t.Error("the version did not change with the acknowledgement")
	}
}

// A rewrite or a removal does not disturb a read in progress.
func TestReadDuringRewrite(t *testing.T) {
	events := noteEvents(t, "s", 300)
	dir := t.TempDir()
	s := open(t, dir)
	write(t, dir, "s", content(events))
	seq := int64(0)
	for e, err := range s.Read(t.Context(), "s", eventlog.Span{}) {
		must(t, err)
		if seq++; e.Seq != seq || !bytes.Equal(e.Line(), events[seq-1].Line()) {
			t.Fatalf("seq %d, want %d with the same line", e.Seq, seq)
		}
		switch e.Seq {
		case 100:
			must(t, s.Rewrite(t.Context(), "s", head(events), nil, []event.Event{seal(t, events, nil)}))
		case 200:
			for last, err := range s.Read(t.Context(), "s", eventlog.Span{Backward: true, Limit: 1}) {
				must(t, err)
				must(t, s.RemoveSession(t.Context(), "s", last.Head()))
			}
		}
	}
	if seq != 300 {
		t.Errorf("the read ended at %d", seq)
	}
	_, err := read(t, s, "s", eventlog.Span{})
	wantErr(t, err, eventlog.ErrNotFound)
}

// A read ends without an error if the tail it reads is truncated.
func TestTailCutUnderReader(t *testing.T) {
	events := noteEvents(t, "s", 400)
	n := 390
	for events[n-1].More() != 0 {
		n--
	}
	dir := t.TempDir()
	path := write(t, dir, "s", content(events))
	s := open(t, dir)
	last := int64(0)
	for e, err := range s.Read(t.Context(), "s", eventlog.Span{}) {
		must(t, err)
		if last = e.Seq; last == 1 {
			must(t, os.Truncate(path, int64(len(content(events[:n])))))
		}
	}
	if last != int64(n) {
		t.Errorf("the read ended at %d, want %d", last, n)
	}
}

func TestReadHonoursContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s", content(sealed(t, "s", 1, 1, 1)))
	s := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got error
	n := 0
	for _, err := range s.Read(ctx, "s", eventlog.Span{}) {
		n++
		got = err
		cancel()
	}
	wantErr(t, got, context.Canceled)
	if n != 2 {
		t.Errorf("%d events and errors, want one of each", n)
	}
}

// A backward read ends with an error at a first line that is not at the start of the
// file.
func TestReadBackwardPastTheFirst(t *testing.T) {
	events := sealed(t, "s", ones(4)...)
	dir := t.TempDir()
	write(t, dir, "s", content([]event.Event{events[3], events[0], events[1]}))
	s := open(t, dir)
	var got []int64
	for e, err := range s.Read(t.Context(), "s", eventlog.Span{Backward: true}) {
		if err != nil {
			wantErr(t, err, eventlog.ErrCorrupt)
			break
		}
		if got = append(got, e.Seq); len(got) > len(events) {
			t.Fatalf("the read does not end: %v", got)
		}
	}
	if !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("got seqs %v, want 2 1", got)
	}
}

// Damage may begin where an unfinished append ends. A read must report it.
func TestDamageAfterUnfinishedAppend(t *testing.T) {
	events := sealed(t, "s", 1, 3)
	half := content(events[:3])
	for _, again := range [][]byte{content(events[:1]), half} {
		dir := t.TempDir()
		write(t, dir, "s", append(bytes.Clone(half), again...))
		for _, backward := range []bool{false, true} {
			_, err := read(t, open(t, dir), "s", eventlog.Span{Backward: backward})
			var corrupt *eventlog.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset != int64(len(half)) || corrupt.Seq != 4 {
				t.Errorf("backward %v: %v, want damage at byte %d, seq 4", backward, err, len(half))
			}
		}
	}
}
