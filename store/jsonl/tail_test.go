package jsonl

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/testsize"
)

// seal returns one more event after events; it names cut if cut is not nil.
func seal(t testing.TB, events []event.Event, cut *event.Cut) event.Event {
	t.Helper()
	session := "s"
	if len(events) > 0 {
		session = events[0].SessionID
	}
	r := &cutNamer{recorder: recorder{events: slices.Clone(events)}, cut: cut}
	log := eventlog.Open(r, eventlog.Options{SpillOver: -1})
	_, err := log.Append(t.Context(), session, eventlog.Any(), note("after"))
	must(t, err)
	return r.events[len(r.events)-1]
}

// recovered appends after events as eventlog.Log does, to a file with a torn tail: the
// first append fails with the cut, the next one names it.
func recovered(t *testing.T, s *Store, events []event.Event, torn []byte) {
	t.Helper()
	next := seal(t, events, nil)
	err := s.Append(t.Context(), next.SessionID, head(events), []event.Event{next}, false)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Cut == nil {
		t.Fatalf("append over a torn tail: %v, want a conflict with its cut", err)
	}
	want := event.Cut{Bytes: int64(len(torn)), SHA256: sha256.Sum256(torn)}
	if *conflict.Cut != want || conflict.Actual != head(events) {
		t.Fatalf("conflict has cut %+v at %v, want %+v at %v", *conflict.Cut, conflict.Actual, want, head(events))
	}
	kept, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("%s.torn-%d", folder.FileName(next.SessionID), len(content(events)))))
	must(t, err)
	if !bytes.Equal(kept, torn) {
		t.Fatalf("saved %q, want %q", kept, torn)
	}
	named := seal(t, events, conflict.Cut)
	must(t, s.Append(t.Context(), next.SessionID, head(events), []event.Event{named}, false))
	wantSeqs(t, s, next.SessionID, eventlog.Span{}, upTo(len(events)+1)...)
}

// A torn tail at every byte of the last append is recovered.
func TestTornAtEveryByte(t *testing.T) {
	for _, size := range []int{1, 3} {
		for _, before := range [][]int{nil, {1}, {2, 1}} {
			events := sealed(t, "s", append(slices.Clone(before), size)...)
			good := events[:len(events)-size]
			start, whole := len(content(good)), content(events)
			for cut := start + 1; cut < len(whole); cut++ {
				if !testsize.Every(cut, 5) {
					continue
				}
				dir := t.TempDir()
				write(t, dir, "s", whole[:cut])
				s := New(dir, Options{FS: newFaults(dir)})
				if len(good) == 0 {
					_, err := read(t, s, "s", eventlog.Span{})
					wantErr(t, err, eventlog.ErrNotFound)
				} else {
					wantSeqs(t, s, "s", eventlog.Span{}, upTo(len(good))...)
				}
				if (cut-start)%7 == 0 || cut > len(whole)-3 {
					recovered(t, s, good, whole[start:cut])
				}
				must(t, s.Close())
			}
		}
	}
}

func TestTails(t *testing.T) {
	events := sealed(t, "s", 1, 2, 3)
	all := content(events)
	three := len(content(events[:3]))
	four := len(content(events[:4]))
	five := len(content(events[:5]))
	flip := func(at int) []byte {
		b := bytes.Clone(all)
		b[at] ^= 1
		return b
	}
	hole := bytes.Clone(all)
	clear(hole[four+20 : five+30])
	block := (three + 511) &^ 511 // within the append that ends at four
	lost := slices.Concat(all[:three], make([]byte, block-three), all[block:])
	nul := func(at int) []byte {
		b := bytes.Clone(all)
		b[at] = 0
		return b
	}
	foreign := []byte(`{"type":"user","message":"not ours"}` + "\n")
	other := content(sealed(t, "other", 1))
	for _, test := range []struct {
		name string
		file []byte
		good int   // events before the torn tail
		at   int64 // offset of damage; -1 if the tail is torn
		seq  int64
	}{
		{"NULs after the last line", append(bytes.Clone(all), make([]byte, 9000)...), 6, -1, 0},
		{"NULs after an unfinished append", append(bytes.Clone(all[:four]), make([]byte, 100)...), 3, -1, 0},
		{"a hole within the last append", hole, 3, -1, 0},
		{"a lost block at the start of the last append", lost, 3, -1, 0},
		{"a NUL in the first line", nul(60), 0, 0, 0},
		{"a NUL in the middle", nul(len(content(events[:1])) + 100), 0, int64(len(content(events[:1]))), 2},
		{"no newline", all[:len(all)-1], 3, -1, 0},
		{"half a line without newline", append(bytes.Clone(all), `{"crc":"0`...), 6, -1, 0},
		{"a bad crc in the last line", flip(len(all) - 20), 3, -1, 0},
		{"a bad crc in the middle of the last append", flip(four + 100), 3, -1, 0},
		{"garbage lines", append(bytes.Clone(all), "x\ny\n"...), 6, -1, 0},
		{"a bad crc in the first line", flip(100), 0, 0, 0},
		{"a bad crc in the middle", flip(len(content(events[:1])) + 100), 0, int64(len(content(events[:1]))), 2},
		{"a bad crc just before the last append", flip(three - 30), 0, int64(len(content(events[:2]))), 3},
		{"a line lost", slices.Concat(all[:three], all[four:]), 0, int64(three), 4},
		{"an unfinished append within", append(bytes.Clone(all[:four]), content([]event.Event{seal(t, events[:4], nil)})...), 0, int64(four), 5},
		{"a foreign line", append(bytes.Clone(all), foreign...), 0, int64(len(all)), 7},
		{"a line of another session", append(bytes.Clone(all), other...), 0, int64(len(all)), 7},
		{"a first line of another session", other, 0, 0, 0},
		{"a first line that is not the first", all[three:], 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, dir, "s", test.file)
			s := open(t, dir)
			if test.at < 0 {
				wantSeqs(t, s, "s", eventlog.Span{}, upTo(test.good)...)
				recovered(t, s, events[:test.good], test.file[len(content(events[:test.good])):])
				return
			}
			damaged(t, s, path, test.file, test.at, test.seq)
		})
	}
}

// damaged checks that the damage is located and the file is unchanged.
func damaged(t *testing.T, s *Store, path string, file []byte, at, seq int64) {
	t.Helper()
	_, reading := read(t, s, "s", eventlog.Span{})
	appending := s.Append(t.Context(), "s", event.Head{}, []event.Event{seal(t, nil, nil)}, false)
	for _, err := range []error{reading, appending} {
		var corrupt *eventlog.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("got error %v, want damage", err)
		}
		if corrupt.Offset != at || corrupt.Path != path || corrupt.Seq != seq {
			t.Errorf("damage at %s byte %d seq %d, want %s byte %d seq %d (%v)", corrupt.Path, corrupt.Offset, corrupt.Seq, path, at, seq, err)
		}
	}
	now, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(now, file) {
		t.Error("the damaged file was changed")
	}
}

func TestNewerVersionIsNeverCut(t *testing.T) {
	events := sealed(t, "s", 1)
	newer := bytes.Replace(content(sealed(t, "s", 1)), []byte(`"v":1`), []byte(`"v":2`), 1)
	file := append(content(events), newer...)
	dir := t.TempDir()
	path := write(t, dir, "s", file)
	s := open(t, dir)
	seqs, err := read(t, s, "s", eventlog.Span{})
	wantErr(t, err, event.ErrVersion)
	if len(seqs) != 1 {
		t.Errorf("read %v before the newer line", seqs)
	}
	err = s.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false)
	wantErr(t, err, event.ErrVersion)
	now, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(now, file) {
		t.Error("the file was changed")
	}
}

// A file with carriage returns is readable, and appends succeed.
func TestCarriageReturns(t *testing.T) {
	events := sealed(t, "s", 1, 2)
	dir := t.TempDir()
	write(t, dir, "s", bytes.ReplaceAll(content(events), []byte("\n"), []byte("\r\n")))
	s := open(t, dir)
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3)
	must(t, s.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false))
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3, 4)
	wantSeqs(t, s, "s", eventlog.Span{From: 3}, 3, 4)
}

// A cut stays pending until an event names it. That holds after reopening, and after a
// crash between saving and truncating the tail.
func TestPendingCutSurvivesReopening(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	good, torn := content(events[:1]), content(events[1:])[:50]
	for _, crash := range []string{"before the cut", "after the cut"} {
		t.Run(crash, func(t *testing.T) {
			dir := t.TempDir()
			file := bytes.Clone(good)
			if crash == "before the cut" {
				file = append(file, torn...)
			}
			write(t, dir, "s", file)
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("s.torn-%d", len(good))), torn, 0o600))
			recovered(t, open(t, dir), events[:1], torn)
			err := open(t, dir).Append(t.Context(), "s", head(events[:1]), events[1:], false)
			var conflict *eventlog.ConflictError
			if !errors.As(err, &conflict) || conflict.Cut != nil {
				t.Errorf("after the cut was named: %v, want a conflict without it", err)
			}
		})
	}
}

// Two torn tails at one offset are both saved.
func TestTornTwiceAtOnePlace(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	good := content(events[:1])
	dir := t.TempDir()
	write(t, dir, "s", append(bytes.Clone(good), "second"...))
	must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("s.torn-%d", len(good))), []byte("first"), 0o600))
	recovered(t, open(t, dir), events[:1], []byte("firstsecond"))
}

// An append ignores damage before the recovery window. A window without a newline is
// damage.
func TestNoLineWithinTheWindow(t *testing.T) {
	dir := t.TempDir()
	file := append(content(sealed(t, "s", 1)), make([]byte, window+10)...)
	path := write(t, dir, "s", file)
	s := open(t, dir)
	err := s.Append(t.Context(), "s", event.Head{}, []event.Event{seal(t, nil, nil)}, false)
	wantErr(t, err, eventlog.ErrCorrupt)
	now, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(now, file) {
		t.Error("the file was changed")
	}
}

func TestEmptyFileIsNoSession(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s", nil)
	s := open(t, dir)
	_, err := read(t, s, "s", eventlog.Span{})
	wantErr(t, err, eventlog.ErrNotFound)
	_, err = s.Version(t.Context(), "s")
	wantErr(t, err, eventlog.ErrNotFound)
	for info := range s.Sessions(t.Context()) {
		t.Errorf("listed %q", info.ID)
	}
	appendAll(t, s, "s", event.Head{}, sealed(t, "s", 2))
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2)
}

// locked is an FS with one file that cannot be opened.
type locked struct {
	FS
	name string
}

func (l locked) Open(name string, flag int) (File, error) {
	if name == l.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.FS.Open(name, flag)
}

func TestTornTailsContinueAfterUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", []byte(`{"crc":"`))
	write(t, dir, "b", []byte(`{"crc":"`))
	s := open(t, dir, Options{FS: locked{Dir(dir), "a.jsonl"}})
	var got []string
	for tail, err := range s.TornTails(t.Context(), "") {
		got = append(got, fmt.Sprintf("%s %d %t", tail.Session, tail.Bytes, errors.Is(err, fs.ErrPermission)))
	}
	if want := []string{"a 0 true", "b 8 false"}; !slices.Equal(got, want) {
		t.Errorf("TornTails yields %q, want %q", got, want)
	}
}
