package jsonl_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

// For any content of a session's file: forward and backward reads yield the complete
// appends up to the first fault. An append follows them and saves the truncated bytes,
// or it fails and changes nothing.
func FuzzTail(f *testing.F) {
	for _, name := range []string{"basic", "batch", "cut", "torn", "redacted", "unknown", "parent", "child"} {
		text, err := os.ReadFile("../../testdata/golden/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(`"session_id":"`+name+`"`), []byte(`"session_id":"s"`))
		if len(text) > maxFuzzed {
			f.Fatalf("%s has %d bytes", name, len(text))
		}
		hole := bytes.Clone(text)
		clear(hole[len(hole)/2&^511:][:512])
		for _, file := range [][]byte{
			text, text[:len(text)-1], text[:len(text)*2/3], append(bytes.Clone(text), make([]byte, 700)...), hole, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")),
			append(bytes.Clone(text), text...), text[bytes.IndexByte(text, '\n')+1:],
		} {
			f.Add(file, true)
			f.Add(file, false)
		}
	}
	parent, err := os.ReadFile("../../testdata/golden/parent.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte, mend bool) {
		if len(file) > maxFuzzed {
			return
		}
		if mend {
			file = withCRCs(file)
		}
		x := &tailFuzz{T: t, disk: crashfs.New(), file: file}
		x.good, x.end, x.faulty = goodLines(file)
		x.write("s.jsonl", file)
		x.reads()
		x.write("parent.jsonl", parent) // parent of the golden forks
		x.appends()
	})
}

const maxFuzzed = 16 << 10

type tailFuzz struct {
	*testing.T
	disk   *crashfs.Disk
	file   []byte
	good   []string // lines of the complete appends before the first fault
	end    int      // offset after them
	faulty bool     // other bytes follow
}

// goodLines reads a file with the simplest algorithm.
func goodLines(file []byte) (good []string, end int, faulty bool) {
	var open []string
	at, seq, more := 0, int64(0), 0
	for line := range bytes.Lines(file) {
		e, err := event.Parse(bytes.TrimSuffix(line, []byte("\n")), "s")
		if err == nil && seq == 0 && e.Seq != 1 && e.Type != event.SessionForked {
			return nil, 0, true
		}
		if err != nil || line[len(line)-1] != '\n' || seq > 0 && e.Seq != seq+1 || more > 0 && e.More() != more-1 {
			return good, end, true
		}
		at += len(line)
		open, seq, more = append(open, string(line[:len(line)-1])), e.Seq, e.More()
		if more == 0 {
			good, open, end = append(good, open...), nil, at
		}
	}
	return good, end, len(open) > 0
}

// withCRCs corrects the crc of every line.
func withCRCs(file []byte) []byte {
	const start, body = len(`{"crc":"`), len(`{"crc":"00000000",`)
	file = bytes.Clone(file)
	for line := range bytes.Lines(file) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) > body {
			sum := crc32.Checksum(line[body:], crc32.MakeTable(crc32.Castagnoli))
			hex.Encode(line[start:], binary.BigEndian.AppendUint32(nil, sum))
		}
	}
	return file
}

func (x *tailFuzz) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// write creates a file of the store.
func (x *tailFuzz) write(name string, content []byte) {
	x.Helper()
	root := x.disk.Mount()
	x.must(root.MakeRoot())
	file, err := root.Open(name, os.O_WRONLY|os.O_CREATE)
	x.must(err)
	_, err = file.Write(content)
	x.must(errors.Join(err, file.Close(), root.Close()))
}

// content returns the content of a file, or nil if it does not exist.
func (x *tailFuzz) content(name string) []byte {
	x.Helper()
	root := x.disk.Mount()
	defer root.Close()
	file, err := root.Open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	x.must(err)
	defer file.Close()
	info, err := file.Stat()
	x.must(err)
	b := make([]byte, info.Size)
	if len(b) > 0 {
		_, err = file.ReadAt(b, 0)
	}
	x.must(err)
	return b
}

func (x *tailFuzz) open(readOnly bool) *eventlog.Log {
	return eventlog.Open(jsonl.New("store", jsonl.Options{FS: x.disk.Mount(), ReadOnly: readOnly}))
}

// lines returns the session's stored lines.
func (x *tailFuzz) lines(log *eventlog.Log, backward bool) (lines []string, err error) {
	for e, err := range log.Store().Read(x.Context(), "s", eventlog.Span{Backward: backward}) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(e.Line()))
	}
	return lines, nil
}

// reads reads the file in every way through a read-only store, which must not change
// it.
func (x *tailFuzz) reads() {
	x.Helper()
	log := x.open(true)
	forward, err := x.lines(log, false)
	switch {
	case len(x.good) == 0 && errors.Is(err, eventlog.ErrNotFound):
	case len(x.good) == 0 && err == nil:
		x.Fatalf("read %q from a file without a complete append", forward)
	case err == nil:
		if !slices.Equal(forward, x.good) {
			x.Fatalf("read %q\nof %q", forward, x.good)
		}
	case !isDamage(err) || !x.faulty:
		x.Fatalf("read: %v\nof %q", err, x.good)
	case len(forward) < len(x.good) || !slices.Equal(forward[:len(x.good)], x.good):
		x.Fatalf("read %q before %v\nof %q", forward, err, x.good)
	}
	x.backward(log, forward, err)
	x.checkReports(log, err)
	x.must(log.Close())
	if !bytes.Equal(x.content("s.jsonl"), x.file) {
		x.Fatalf("reading changed the file")
	}
}

// isDamage reports whether err is about damage or a newer version.
func isDamage(err error) bool {
	return errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, event.ErrVersion)
}

// backward compares a backward read with the forward read.
func (x *tailFuzz) backward(log *eventlog.Log, forward []string, forwardErr error) {
	x.Helper()
	backward, err := x.lines(log, true)
	if (err == nil) != (forwardErr == nil) || err != nil && !isDamage(err) && !errors.Is(err, eventlog.ErrNotFound) {
		x.Fatalf("forward: %v, backward: %v", forwardErr, err)
	}
	slices.Reverse(backward)
	if err == nil && !slices.Equal(backward, forward) {
		x.Fatalf("forward  %q\nbackward %q", forward, backward)
	}
}

// checkReports checks that Verify and Sessions succeed, and that Verify reports the
// damage.
func (x *tailFuzz) checkReports(log *eventlog.Log, found error) {
	x.Helper()
	report, err := verify.Session(x.Context(), log, "s")
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		x.Fatalf("verify: %v", err)
	}
	if isDamage(found) && len(report.Defects) == 0 {
		x.Fatalf("verify does not report %v", found)
	}
	if found == nil && x.faulty && len(report.Defects)+len(report.Notes) == 0 {
		x.Fatalf("verify reports nothing after byte %d", x.end)
	}
	for info, err := range log.Sessions(x.Context()) {
		if err != nil || info.ID != "s" {
			x.Fatalf("listed %q: %v", info.ID, err)
		}
	}
}

// appends appends an event, which succeeds or changes nothing.
func (x *tailFuzz) appends() {
	x.Helper()
	log := x.open(false)
	_, err := log.Append(x.Context(), "s", eventlog.Any(), event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)})
	x.must(log.Close())
	after := x.content("s.jsonl")
	if err != nil {
		if !isDamage(err) && !errors.Is(err, event.ErrInvalid) && !errors.Is(err, eventlog.ErrNotFound) { // the parent is missing
			x.Fatalf("append: %v", err)
		}
		if !bytes.Equal(after, x.file) && !x.isSaved(after) {
			x.Fatalf("the refused append changed the file: %v", err)
		}
		return
	}
	if !x.faulty && !bytes.HasPrefix(after, x.file) || !bytes.HasPrefix(after, x.file[:x.end]) {
		x.Fatalf("the append changed earlier lines")
	}
	line := after[bytes.LastIndexByte(after[:len(after)-1], '\n')+1:]
	saved := after[:len(after)-len(line)]
	e, err := event.Parse(bytes.TrimSuffix(line, []byte("\n")), "s")
	x.must(err)
	if _, ok := e.Cut(); !ok && !bytes.Equal(saved, x.file) {
		x.Fatalf("the append truncated %d bytes and names no cut", len(x.file)-len(saved))
	}
	if !bytes.Equal(saved, x.file) && !x.isSaved(saved) {
		x.Fatalf("the truncated bytes are not saved")
	}
}

// isSaved reports whether the file was truncated to saved and the rest is in a saved
// torn tail.
func (x *tailFuzz) isSaved(saved []byte) bool {
	name := "s.torn-" + strconv.Itoa(len(saved))
	return bytes.HasPrefix(x.file, saved) && bytes.Equal(x.content(name), x.file[len(saved):])
}
