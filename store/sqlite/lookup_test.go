package sqlite

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// A migrated file does not know the blobs of its sessions, so that gc reads the lines. It
// knows them again when no session is older than the index.
func TestMigratedFilesHaveNoBlobIndex(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	body := func(session, text string) event.Digest {
		t.Helper()
		d, _, err := s.PutBlob(t.Context(), strings.NewReader(text))
		must(t, err)
		e := event.UserMessage("hello")
		must(t, e.AddBlobs(d))
		_, err = eventlog.Open(s).Append(t.Context(), session, eventlog.Any(), e)
		must(t, err)
		return d
	}
	old := body("old", "one")
	must(t, s.Close())
	makeDatabase(t, path, `DROP TABLE catalog; DROP TABLE related; DROP TABLE blob_users; PRAGMA user_version = 3`)
	s = open(t, path)
	now := body("new", "two")
	for range 2 {
		if got, err := collect(s.BlobUsers(t.Context(), []event.Digest{old, now})); !errors.Is(err, eventlog.ErrUnsupported) || len(got) > 0 {
			t.Errorf("users of blobs in a migrated file: got %v, %v; want ErrUnsupported", got, err)
		}
		body("old", "three")
	}
	head, err := eventlog.Open(s).Head(t.Context(), "old")
	must(t, err)
	must(t, s.RemoveSession(t.Context(), "old", head))
	got, err := collect(s.BlobUsers(t.Context(), []event.Digest{old, now}))
	must(t, err)
	if want := []eventlog.BlobUser{{Digest: now, Session: "new", Seq: 1}}; !slices.Equal(got, want) {
		t.Errorf("users of blobs: got %v, want %v", got, want)
	}
}

// A migration does not read lines, so damage to them does not stop it: sound sessions take
// appends.
func TestMigrationOfADamagedFile(t *testing.T) {
	s, pages := damagedPages(t, func(page, line []byte) bool { return bytes.Contains(page, line) })
	if pages != 1 {
		t.Fatalf("damaged %d pages", pages)
	}
	must(t, s.Close())
	makeDatabase(t, s.Path(), `DROP TABLE catalog; DROP TABLE related; DROP TABLE blob_users; PRAGMA user_version = 3`)
	log := eventlog.Open(open(t, s.Path()))
	for _, session := range []string{"a", "new"} {
		_, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello"))
		must(t, err)
	}
}
