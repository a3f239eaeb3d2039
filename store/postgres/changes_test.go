package postgres_test

import (
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
)

// A store reports its own appends once: the notification that it sends to other processes
// does not come back as another change. After a second one, watchers would read the session.
func TestOwnChangesOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	store, err := postgres.New(dsn)
	if err != nil {
		t.Fatal(err)
	}
	log, other := eventlog.Open(store), openLog(t, dsn)
	defer log.Close()
	appendTo := func(log *eventlog.Log, session string) {
		t.Helper()
		if _, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Error(err)
		}
	}
	var got []string
	for session, err := range store.Changes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, session); len(got) == 21 {
			break
		}
		if session == "a" {
			appendTo(other, "b")
		} else {
			appendTo(log, "a")
		}
	}
	if want := append([]string{""}, slices.Repeat([]string{"a", "b"}, 10)...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
