package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/notify"
)

// A poll finds the sessions that other connections have changed. A read-only store finds
// them too, whether or not a writer has the database open.
func TestPollFindsChanges(t *testing.T) {
	for name, options := range map[string]Options{"writable": {}, "read-only": {ReadOnly: true}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			w := New(path, Options{NoSync: true})
			head := add(t, w, "a", event.Head{}, 3, "x")
			s := open(t, path, options)
			var found []string
			p := s.newPoller(func(session string) { found = append(found, session) })
			want := func(pace notify.Pace, session ...string) {
				t.Helper()
				found = nil
				got, err := p.Poll(t.Context())
				if err != nil || got != pace || len(found) != len(session) || len(found) > 0 && found[0] != session[0] {
					t.Fatalf("pace %v, sessions %q, %v; want %v, %q", got, found, err, pace, session)
				}
			}
			want(notify.Idle)
			want(notify.Idle)
			head = add(t, w, "a", head, 1_200, "y") // more than a query reads
			want(notify.Busy, "a")
			want(notify.Busy, "a")
			want(notify.Idle)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			want(notify.Idle)
			w = open(t, path)
			add(t, w, "b", event.Head{}, 1, "z")
			want(notify.Busy, "b")
			if err := w.RemoveSession(context.Background(), "a", head); err != nil {
				t.Fatal(err)
			}
			want(notify.Busy, "")
			want(notify.Idle)
		})
	}
}
