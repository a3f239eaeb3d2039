package sqlite

import (
	"fmt"
	"os"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// A database with two names is readable and not writable: each name would have a
// write-ahead log.
func TestHardLinkedDatabase(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	head := add(t, s, "a", event.Head{}, 2, "x")
	must(t, s.Close())
	must(t, os.Link(path, path+".link"))
	for _, name := range []string{path, path + ".link"} {
		want(t, eventlog.ErrReadOnly, open(t, name).Append(t.Context(), "a", head, eventChain("a", head, 1, "y"), false))
		events, err := collect(open(t, name, Options{ReadOnly: true}).Read(t.Context(), "a", eventlog.Span{}))
		if err != nil || len(events) != 2 {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
	must(t, os.Remove(path+".link"))
	add(t, open(t, path), "a", head, 1, "y")
}

// A newer program changes the schema while this one has the database open. This one neither
// writes any more nor sets the old version.
func TestNewerProgramChangesTheSchema(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	head := add(t, s, "a", event.Head{}, 2, "x")
	newer, err := dial(path, writerParameters)
	must(t, err)
	must(t, newer.run(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1)))
	want(t, event.ErrVersion, s.Append(t.Context(), "a", head, eventChain("a", head, 1, "y"), false))
	want(t, event.ErrVersion, s.Sync(t.Context(), "a"))
	_ = s.Close() // it may report the version
	if got, err := newer.number("PRAGMA user_version"); err != nil || got != schemaVersion+1 {
		t.Errorf("version %d, %v", got, err)
	}
	must(t, newer.close())
}
