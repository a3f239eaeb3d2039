package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const pageSize = 4096

// damagedPages makes a store of three sessions of 400 events and overwrites the pages
// that pick selects.
func damagedPages(t testing.TB, pick func(page []byte, line []byte) bool) (s *Store, damaged int) {
	t.Helper()
	path := tempPath(t)
	s = New(path)
	for _, session := range []string{"a", "b", "c"} {
		must(t, s.Append(t.Context(), session, event.Head{}, eventChain(session, event.Head{}, 400, session), false))
	}
	events, err := collect(s.Read(t.Context(), "b", eventlog.Span{From: 200, To: 200}))
	must(t, err)
	must(t, s.Index(t.Context(), false)) // now, so that closing does not write
	must(t, s.Close())
	file, err := os.ReadFile(path)
	must(t, err)
	for at := pageSize; at < len(file); at += pageSize {
		if page := file[at : at+pageSize]; pick(page, events[0].Line()) {
			copy(page, bytes.Repeat([]byte{0xa5}, pageSize))
			damaged++
		}
	}
	must(t, os.WriteFile(path, file, 0o600))
	return open(t, path), damaged
}

// countFragments counts the events of session b that Fragments finds, and the bad
// fragments. Each seq must occur once and in order.
func countFragments(t testing.TB, s *Store) (events, bad int) {
	t.Helper()
	for f, err := range s.Fragments(t.Context(), "b") {
		must(t, err)
		if want := int64(events + bad + 1); f.Seq != want || f.Err == nil && f.Event.Seq != want {
			t.Fatalf("fragment of seq %d, event %v, where %d is due: %v", f.Seq, f.Event, want, f.Err)
		}
		if f.Offset != -1 || !strings.HasPrefix(f.Path, "s.db: table events") {
			t.Fatalf("place %q %d", f.Path, f.Offset)
		}
		if f.Err == nil {
			events++
		} else {
			bad++
		}
	}
	return events, bad
}

// Fragments reports the rows of a damaged page and finds all others.
func TestFragmentsWithADamagedPage(t *testing.T) {
	s, pages := damagedPages(t, func(page, line []byte) bool { return bytes.Contains(page, line) })
	if pages != 1 {
		t.Fatalf("damaged %d pages", pages)
	}
	events, bad := countFragments(t, s)
	if bad < 2 || bad > 20 || events+bad != 400 {
		t.Errorf("found %d events and %d bad rows", events, bad)
	}
}

// Fragments finds all rows in the table when pages of the index are damaged.
func TestFragmentsWithoutTheIndex(t *testing.T) {
	s, pages := damagedPages(t, func(page, line []byte) bool {
		const leafOfIndex = 0x0a
		return page[0] == leafOfIndex && int(page[3])<<8+int(page[4]) > 200
	})
	if pages == 0 {
		t.Fatal("found no page of the index")
	}
	if events, bad := countFragments(t, s); events != 400 || bad != 0 {
		t.Errorf("found %d events and %d bad rows", events, bad)
	}
}

// Fragments reports missing rows everywhere in the session.
func TestFragmentsOfMissingRows(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	must(t, s.Append(t.Context(), "b", event.Head{}, eventChain("b", event.Head{}, 100, "x"), false))
	must(t, s.Close())
	change(t, path, "DELETE FROM events WHERE seq IN (1, 50, 51, 100)")
	if events, bad := countFragments(t, open(t, path)); events != 96 || bad != 4 {
		t.Errorf("found %d events and %d missing rows", events, bad)
	}
}

// A row after the session's head is an event. The rows between are not reported as
// missing.
func TestFragmentsBeyondTheHead(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	must(t, s.Append(t.Context(), "b", event.Head{}, eventChain("b", event.Head{}, 4, "x"), false))
	must(t, s.Close())
	change(t, path, "UPDATE events SET seq = 9 WHERE seq = 2", "UPDATE events SET line = x'00ff' WHERE seq = 3")
	var got []string
	for f, err := range open(t, path).Fragments(t.Context(), "b") {
		must(t, err)
		got = append(got, fmt.Sprintf("%d:%d:%v", f.Seq, f.Event.Seq, f.Err == nil))
	}
	want := "1:1:true 2:0:false 3:0:false 4:4:true 0:2:true"
	if strings.Join(got, " ") != want {
		t.Errorf("found %v, want %s", got, want)
	}
}

// Fragments finds a session without a session row by its events.
func TestFragmentsWithoutTheSessionsTable(t *testing.T) {
	s, pages := damagedPages(t, func(page, line []byte) bool {
		const leafOfTable = 0x0d
		rows := int(page[3])<<8 + int(page[4])
		return page[0] == leafOfTable && rows == 3 && !bytes.Contains(page, []byte("crc"))
	})
	if pages == 0 {
		t.Fatal("found no page of the table")
	}
	if events, bad := countFragments(t, s); events != 400 || bad != 0 {
		t.Errorf("found %d events and %d bad rows", events, bad)
	}
}

// change runs statements on a closed database.
func change(t testing.TB, path string, statements ...string) {
	t.Helper()
	c, err := dial(path, "mode=rw")
	must(t, err)
	for _, statement := range statements {
		must(t, c.run(statement))
	}
	must(t, c.close())
}
