package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// putRow stores a row of a session in the catalog.
func putRow(t *testing.T, s *Store, session, text string) {
	t.Helper()
	at, err := s.Version(t.Context(), session)
	must(t, err)
	must(t, s.PutCatalogRows(t.Context(), []eventlog.CatalogRow{{Session: session, At: at, Data: []byte(text)}}))
}

// places is the number of places in the files of the store that have a text.
func places(t *testing.T, s *Store, text string) int {
	t.Helper()
	found, err := collect(s.FindBytes(t.Context(), [][]byte{[]byte(text)}))
	must(t, err)
	return len(found)
}

// An erasure leaves no byte of the row of its session in the files, and keeps the rows of
// other sessions.
func TestErasureLeavesCatalog(t *testing.T) {
	s := open(t, tempPath(t))
	a, b := add(t, s, "a", event.Head{}, 2, "x"), add(t, s, "b", event.Head{}, 2, "x")
	add(t, s, "c", event.Head{}, 2, "x")
	for session, text := range map[string]string{"a": "zyzzyva", "b": "quetzal", "c": "numbat"} {
		putRow(t, s, session, text)
	}
	for _, text := range []string{"zyzzyva", "quetzal", "numbat"} {
		if places(t, s, text) == 0 {
			t.Errorf("%s is in no file", text)
		}
	}
	must(t, s.Rewrite(t.Context(), "a", a, nil, eventChain("a", a, 1, "note")))
	must(t, s.RemoveSession(t.Context(), "b", b))
	for _, text := range []string{"zyzzyva", "quetzal"} {
		if n := places(t, s, text); n > 0 {
			t.Errorf("%s is in %d places", text, n)
		}
	}
	if places(t, s, "numbat") == 0 {
		t.Error("the row of another session is gone")
	}
}

// A damaged catalog has no rows. An erasure fails, because a damaged page may have the row.
func TestCatalogDamaged(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 2, "x")
	putRow(t, s, "a", "zyzzyva")
	page, err := s.writer.conn.number("SELECT rootpage FROM sqlite_schema WHERE name = 'catalog'")
	must(t, err)
	must(t, s.Close())
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, pageSize), (page-1)*pageSize)
	must(t, errors.Join(err, file.Close()))
	s = open(t, path)
	rows, err := s.CatalogRows(t.Context(), []string{"a"})
	must(t, err)
	if len(rows) > 0 {
		t.Errorf("rows of a damaged catalog: %q", rows)
	}
	want(t, eventlog.ErrCorrupt, s.Rewrite(t.Context(), "a", head, nil, eventChain("a", head, 1, "note")))
}

// A list of known sessions has all sessions, wherever a page of the file is damaged.
func TestKnownListsOfDamagedFilesAreWhole(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	const sessions = 200
	rows := map[string]eventlog.SessionInfo{}
	for i := range sessions {
		id := fmt.Sprintf("s%03d", i)
		last := add(t, s, id, event.Head{}, 1, "x")
		rows[id] = eventlog.SessionInfo{ID: id, Known: last}
		putRow(t, s, id, strings.Repeat("r", 400))
	}
	for info, err := range s.Sessions(t.Context()) {
		must(t, err)
		rows[info.ID] = eventlog.SessionInfo{ID: info.ID, Known: rows[info.ID].Known, Bytes: info.Bytes}
	}
	known := func(row eventlog.CatalogRow) (eventlog.SessionInfo, bool) {
		return rows[row.Session], len(row.Data) > 0
	}
	root, err := s.writer.conn.number("SELECT rootpage FROM sqlite_schema WHERE name = 'catalog'")
	must(t, err)
	must(t, s.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	lists := 0
	for at := 0; at < len(whole); at += pageSize {
		page := whole[at : at+pageSize]
		if !bytes.Contains(page, []byte("rrrr")) && at != int(root-1)*pageSize {
			continue
		}
		damaged := bytes.Clone(whole)
		copy(damaged[at:], bytes.Repeat([]byte{0xff}, pageSize))
		must(t, os.WriteFile(path, damaged, 0o600))
		s := open(t, path)
		listed, err := collect(s.ListKnown(t.Context(), known))
		must(t, errors.Join(err, s.Close()))
		if len(listed) != sessions {
			t.Errorf("page %d is damaged: a list has %d of %d sessions", at/pageSize, len(listed), sessions)
		}
		lists++
	}
	if lists < 10 {
		t.Errorf("%d pages of the catalog", lists)
	}
}

// A list of known sessions has each session once, in the order of the keys, also those without a
// row, and none that was removed.
func TestKnownListsHaveAllSessions(t *testing.T) {
	s := open(t, tempPath(t))
	rows := map[string]eventlog.SessionInfo{}
	var ids []string
	for i := range 2*knownKeys + 10 {
		id := fmt.Sprintf("s%03d", 7*i%997)
		last := add(t, s, id, event.Head{}, 1, "x")
		if i%100 == 50 {
			must(t, s.RemoveSession(t.Context(), id, last))
			continue
		}
		ids = append(ids, id)
		if i >= knownKeys && i%3 > 0 { // the first page has no rows
			rows[id] = eventlog.SessionInfo{ID: id, Known: last}
		}
	}
	for info, err := range s.Sessions(t.Context()) {
		must(t, err)
		if row, ok := rows[info.ID]; ok {
			row.Bytes = info.Bytes
			rows[info.ID] = row
			putRow(t, s, info.ID, "row")
		}
	}
	listed, err := collect(s.ListKnown(t.Context(), func(row eventlog.CatalogRow) (eventlog.SessionInfo, bool) {
		return rows[row.Session], len(row.Data) > 0
	}))
	must(t, err)
	if len(listed) != len(ids) {
		t.Fatalf("%d sessions, want %d", len(listed), len(ids))
	}
	for i, info := range listed {
		if _, known := rows[ids[i]]; info.ID != ids[i] || known == info.Known.IsZero() || !known && info.First.Seq != 1 {
			t.Errorf("session %d is %s, want %s, known: %v", i, info.ID, ids[i], known)
		}
	}
}
