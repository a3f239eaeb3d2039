package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/verify"
)

// FuzzDatabase damages the bytes of a database file. All readable events must be
// written events, in both directions. An error must report missing events. An
// acknowledged append must follow the readable events.
func FuzzDatabase(f *testing.F) {
	path := filepath.Join(f.TempDir(), "s.db")
	undamaged, lines := smallDatabase(f, path)
	f.Add([]byte{})
	for i := range len(undamaged) / 512 {
		if !testsize.Every(i, 5) {
			continue
		}
		f.Add([]byte{byte(i), byte(7 * i), byte(31 * i), byte(i / 3)})
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		if len(edits) > 64 {
			return
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		must(t, os.WriteFile(path, applyEdits(undamaged, edits), 0o600))
		x := databaseFuzz{t, path, lines}
		x.reads()
		x.appends()
	})
}

// smallDatabase makes a database of two sessions and a blob. It returns the file and
// the lines of both sessions.
func smallDatabase(t testing.TB, path string) (file []byte, lines map[string][]string) {
	t.Helper()
	s := New(path, Options{NoSync: true})
	lines = map[string][]string{}
	for session, sizes := range map[string][]int{"s": {1, 3, 1, 2}, "t": {2, 1}} {
		var head event.Head
		for _, n := range sizes {
			events := eventChain(session, head, n, strings.Repeat(session, 900))
			must(t, s.Append(t.Context(), session, head, events, false))
			head = headOf(events)
			for i := range events {
				lines[session] = append(lines[session], string(events[i].Line()))
			}
		}
	}
	_, _, err := s.PutBlob(t.Context(), strings.NewReader(blobBody))
	must(t, err)
	must(t, s.Close())
	file, err = os.ReadFile(path)
	must(t, err)
	return file, lines
}

var blobBody = strings.Repeat("body", 700)

// applyEdits returns a copy of the file with edits. An edit has four bytes: a
// position, a value and an action.
func applyEdits(file, edits []byte) []byte {
	const block = 512
	file = slices.Clone(file)
	for len(edits) >= 4 {
		at := (int(edits[0])*block + 2*int(edits[1])) % len(file)
		start := at &^ (block - 1)
		switch value := edits[2]; edits[3] % 5 {
		case 0:
			file[at] = value
		case 1:
			file[at+1] ^= value
		case 2:
			clear(file[start : start+block])
		case 3:
			from := int(value) * block % len(file)
			copy(file[start:start+block], file[from:])
		default:
			file = file[:max(start, block)]
		}
		edits = edits[4:]
	}
	return file
}

type databaseFuzz struct {
	*testing.T
	path  string
	lines map[string][]string
}

func (x *databaseFuzz) open(readOnly bool) *eventlog.Log {
	return eventlog.Open(New(x.path, Options{ReadOnly: readOnly, NoSync: true}))
}

func (x *databaseFuzz) reads() {
	x.Helper()
	log := x.open(true)
	found := map[string]bool{}
	whole := true
	for info, err := range log.Sessions(x.Context()) {
		if whole = whole && err == nil && info.Err == nil; err == nil {
			found[info.ID] = true
		}
	}
	for session, want := range x.lines {
		report, err := verify.Session(x.Context(), log, session)
		if !damage(err) && err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			x.Fatalf("verify %q: %v", session, err)
		}
		silent := err == nil && len(report.Defects) == 0
		x.session(log, session, want, silent)
		if whole && silent && !found[session] {
			x.Fatalf("session %q is read and not listed", session)
		}
	}
	if err := blobOf(x, log); err != nil && !damage(err) && !errors.Is(err, eventlog.ErrBlobNotFound) {
		x.Fatalf("blob: %v", err)
	}
	_ = log.Close()
}

// session compares the readable events of a session with the written ones. verified is
// true if Verify found no damage; Check must find damage then if events are missing.
func (x *databaseFuzz) session(log *eventlog.Log, session string, want []string, verified bool) {
	x.Helper()
	for _, backward := range []bool{false, true} {
		var got []string
		var failed error
		for e, err := range log.Store().Read(x.Context(), session, eventlog.Span{Backward: backward}) {
			if failed = err; err == nil {
				got = append(got, string(e.Line()))
			}
		}
		if backward {
			slices.Reverse(got)
		}
		if failed != nil && !damage(failed) && !errors.Is(failed, eventlog.ErrNotFound) {
			x.Fatalf("read %q: %v", session, failed)
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				x.Fatalf("read a line of %q that was never written: %s", session, line)
			}
		}
		if verified && (failed != nil || !slices.Equal(got, want)) && !x.checkFindsDamage(log) {
			x.Fatalf("read %d events of %q, of %d: %v, and Verify and Check find nothing wrong", len(got), session, len(want), failed)
		}
	}
}

// checkFindsDamage reports whether Check finds damage. Check also reads pages that a
// read in order does not need.
func (x *databaseFuzz) checkFindsDamage(log *eventlog.Log) bool {
	x.Helper()
	for _, err := range verify.Store(x.Context(), log) {
		if err != nil && !damage(err) {
			x.Fatalf("check: %v", err)
		}
		return true
	}
	return false
}

// appends appends to both sessions. An append may fail.
func (x *databaseFuzz) appends() {
	x.Helper()
	log := x.open(false)
	defer log.Close()
	for session := range x.lines {
		e := event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)}
		head, err := log.Append(x.Context(), session, eventlog.Any(), e)
		if err != nil {
			// A header with a newer SQLite version makes a file read-only.
			if !damage(err) && !errors.Is(err, eventlog.ErrUnknownOutcome) && !errors.Is(err, eventlog.ErrReadOnly) {
				x.Fatalf("append to %q: %v", session, err)
			}
			continue
		}
		got, err := log.Event(x.Context(), session, head.Seq)
		if err == nil && got.ID != e.ID {
			x.Fatalf("appended %v to %q as %v, and read %v", e.ID, session, head, got.ID)
		}
	}
}

func blobOf(x *databaseFuzz, log *eventlog.Log) error {
	r, err := log.OpenBlob(x.Context(), event.DigestOf([]byte(blobBody)))
	if err != nil {
		return err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err == nil && string(body) != blobBody {
		x.Fatalf("the blob has %d other bytes", len(body))
	}
	return err
}

// damage reports whether an error means a damaged or too new file.
func damage(err error) bool {
	return errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, event.ErrVersion)
}
