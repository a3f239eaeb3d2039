package jsonl

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Sessions whose file cannot be restored stay refused, and the other sessions keep their
// files open.
func TestManyRefusedSessions(t *testing.T) {
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{OpenFiles: 4, FS: f, NoSync: true})
	const n = 20
	refused := make([][]event.Event, n)
	for i := range refused {
		id := fmt.Sprint("refused", i)
		refused[i] = sealed(t, id, 1, 1)
		appendAll(t, s, id, event.Head{}, refused[i][:1])
		f.set(failing("sync"))
		wantErr(t, s.Append(t.Context(), id, head(refused[i][:1]), refused[i][1:], true), eventlog.ErrUnknownOutcome)
		f.set(nil)
	}
	events := sealed(t, "s", ones(10)...)
	for i := range events {
		appendAll(t, s, "s", head(events[:i]), events[i:i+1])
		if _, open := s.cache.view("s"); !open {
			t.Fatalf("after append %d the file is closed", i+1)
		}
	}
	for i := range refused {
		wantErr(t, s.Append(t.Context(), fmt.Sprint("refused", i), head(refused[i][:1]), refused[i][1:], false), eventlog.ErrReadOnly)
	}
}
