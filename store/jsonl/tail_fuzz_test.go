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

// Whatever stands in a session's file: its complete appends up to the first
// fault are read, from either end; an append stands behind them, what it cut off
// is kept, or it is refused and nothing changes.
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
		x.write("parent.jsonl", parent) // what goldens are forked from
		x.appends()
	})
}

const maxFuzzed = 16 << 10

type tailFuzz struct {
	*testing.T
	disk   *crashfs.Disk
	file   []byte
	good   []string // the lines of the complete appends before the first fault
	end    int      // where they end
	faulty bool     // whether anything stands behind them
}

// goodLines reads a file in the simplest way.
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

// withCRCs gives every line the crc of its bytes.
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

// write makes a file of the store.
func (x *tailFuzz) write(name string, content []byte) {
	x.Helper()
	root := x.disk.Mount()
	x.must(root.MakeRoot())
	file, err := root.Open(name, os.O_WRONLY|os.O_CREATE)
	x.must(err)
	_, err = file.Write(content)
	x.must(errors.Join(err, file.Close(), root.Close()))
}

// content reads a file of the store; nil if there is none.
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

// lines reads the session's lines as they are stored.
func (x *tailFuzz) lines(log *eventlog.Log, backward bool) (lines []string, err error) {
	for e, err := range log.Store().Read(x.Context(), "s", eventlog.Span{Backward: backward}) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(e.Line()))
	}
	return lines, nil
}

// reads reads the file in every way and for reading only, which changes nothing.
func (x *tailFuzz) reads() {
	x.Helper()
	log := x.open(true)
	forward, err := x.lines(log, false)
	switch {
	case len(x.good) == 0 && errors.Is(err, eventlog.ErrNotFound):
	case len(x.good) == 0 && err == nil:
		x.Fatalf("read %q of nothing", forward)
	case err == nil:
		if !slices.Equal(forward, x.good) {
			x.Fatalf("read %q\nof %q", forward, x.good)
		}
	case !damage(err) || !x.faulty:
		x.Fatalf("read: %v\nof %q", err, x.good)
	case len(forward) < len(x.good) || !slices.Equal(forward[:len(x.good)], x.good):
		x.Fatalf("read %q before %v\nof %q", forward, err, x.good)
	}
	x.backward(log, forward, err)
	x.looks(log, err)
	x.must(log.Close())
	if !bytes.Equal(x.content("s.jsonl"), x.file) {
		x.Fatalf("reading changed the file")
	}
}

// damage reports whether an error says that the file is damaged, or too new.
func damage(err error) bool {
	return errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, event.ErrVersion)
}

// backward compares the reading from the other end.
func (x *tailFuzz) backward(log *eventlog.Log, forward []string, forwardErr error) {
	x.Helper()
	backward, err := x.lines(log, true)
	if (err == nil) != (forwardErr == nil) || err != nil && !damage(err) && !errors.Is(err, eventlog.ErrNotFound) {
		x.Fatalf("forward: %v, backward: %v", forwardErr, err)
	}
	slices.Reverse(backward)
	if err == nil && !slices.Equal(backward, forward) {
		x.Fatalf("forward  %q\nbackward %q", forward, backward)
	}
}

// looks makes sure that what only looks gets through, and that damage is
// reported.
func (x *tailFuzz) looks(log *eventlog.Log, found error) {
	x.Helper()
	report, err := verify.Session(x.Context(), log, "s")
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		x.Fatalf("verify: %v", err)
	}
	if damage(found) && len(report.Defects) == 0 {
		x.Fatalf("verify is silent of %v", found)
	}
	if found == nil && x.faulty && len(report.Defects)+len(report.Notes) == 0 {
		x.Fatalf("verify is silent of what stands behind byte %d", x.end)
	}
	for info, err := range log.Sessions(x.Context()) {
		if err != nil || info.ID != "s" {
			x.Fatalf("listed %q: %v", info.ID, err)
		}
	}
}

// appends appends an event, or is refused and changes nothing.
func (x *tailFuzz) appends() {
	x.Helper()
	log := x.open(false)
	_, err := log.Append(x.Context(), "s", eventlog.Any(), event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)})
	x.must(log.Close())
	after := x.content("s.jsonl")
	if err != nil {
		if !damage(err) && !errors.Is(err, event.ErrInvalid) && !errors.Is(err, eventlog.ErrNotFound) { // its parent
			x.Fatalf("append: %v", err)
		}
		if !bytes.Equal(after, x.file) && !x.savedBehind(after) {
			x.Fatalf("the refused append changed the file: %v", err)
		}
		return
	}
	if !x.faulty && !bytes.HasPrefix(after, x.file) || !bytes.HasPrefix(after, x.file[:x.end]) {
		x.Fatalf("the append changed what stood before it")
	}
	line := after[bytes.LastIndexByte(after[:len(after)-1], '\n')+1:]
	kept := after[:len(after)-len(line)]
	e, err := event.Parse(bytes.TrimSuffix(line, []byte("\n")), "s")
	x.must(err)
	if _, ok := e.Cut(); !ok && !bytes.Equal(kept, x.file) {
		x.Fatalf("the append cut off %d bytes and does not say so", len(x.file)-len(kept))
	}
	if !bytes.Equal(kept, x.file) && !x.savedBehind(kept) {
		x.Fatalf("what was cut off is not kept")
	}
}

// savedBehind reports whether kept is a beginning of the file whose rest was saved.
func (x *tailFuzz) savedBehind(kept []byte) bool {
	name := "s.torn-" + strconv.Itoa(len(kept))
	return bytes.HasPrefix(x.file, kept) && bytes.Equal(x.content(name), x.file[len(kept):])
}
