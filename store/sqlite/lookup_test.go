package sqlite

import (
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// A migration finds the blobs of all lines, also of a damaged line: gc must keep them until
// the session is repaired.
func TestMigrationFindsBlobs(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	var want []eventlog.BlobUser
	var digests []event.Digest
	for seq, body := range []string{"one", "two", "three"} {
		d, _, err := s.PutBlob(t.Context(), strings.NewReader(body))
		must(t, err)
		e := event.UserMessage(`not a list: "blobs":[1]`)
		must(t, e.AddBlobs(d))
		_, err = eventlog.Open(s).Append(t.Context(), "a", eventlog.Any(), e)
		must(t, err)
		digests, want = append(digests, d), append(want, eventlog.BlobUser{Digest: d, Session: "a", Seq: int64(seq + 1)})
	}
	must(t, s.Close())
	makeDatabase(t, path, `UPDATE events SET line = CAST(substr(CAST(line AS TEXT), 1, length(line) - 9) AS BLOB) WHERE seq = 2;
		DROP TABLE catalog; DROP TABLE related; DROP TABLE blob_users; PRAGMA user_version = 3`)
	s = open(t, path)
	_, _, err := s.PutBlob(t.Context(), strings.NewReader("migrates"))
	must(t, err)
	got, err := collect(s.BlobUsers(t.Context(), digests))
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("users of blobs: got %v, want %v", got, want)
	}
}
