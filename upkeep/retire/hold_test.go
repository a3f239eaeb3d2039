package retire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/erase"
)

// A session on hold stays with its parents, also if it was put on hold after the plan. The
// notes of the store say who retired the others, and why.
func TestHeldSessionsStay(t *testing.T) {
	for name := range stores(t) {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, stores(t)[name])
				w.fill()
				hold := func() {
					if err := erase.Hold(t.Context(), w.log, "both-fork", "case 17", "ann"); err != nil {
						t.Fatal(err)
					}
				}
				if !late {
					hold()
				}
				p := w.plan()
				if late {
					hold()
				}
				p.By, p.Reason = "bob", "idle"
				if err := p.Remove(t.Context(), w.log); err != nil {
					t.Fatal(err)
				}
				if got, want := ids(p.Removed), []string{"alone", "idle-fork"}; !slices.Equal(got, want) {
					t.Errorf("removed %q, want %q", got, want)
				}
				reasons := ""
				for _, s := range p.Kept {
					reasons += s.ID + ": " + s.Reason + "\n"
				}
				for _, want := range []string{`both-fork: it is on hold since 2026-11-01 by "ann": "case 17"`, `both: its fork "both-fork" stays`} {
					if !strings.Contains(reasons, want+"\n") {
						t.Errorf("the reasons lack %s:\n%s", want, reasons)
					}
				}
				wantRetired(t, w.log, 2)
			})
		}
	}
}

// wantRetired checks that the notes name a number of retired sessions, by bob.
func wantRetired(t *testing.T, log *eventlog.Log, n int) {
	t.Helper()
	retired := 0
	for e, err := range log.Read(t.Context(), storenotes.Session, eventlog.All()) {
		note, ok, bad := event.Decode[event.StoreNote](&e)
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if !ok || note.Type != "retired" {
			continue
		}
		retired += len(note.Sessions)
		if note.By != "bob" || note.Reason != "idle" {
			t.Errorf("retired by %q because of %q", note.By, note.Reason)
		}
	}
	if retired != n {
		t.Errorf("the notes have %d retired sessions, want %d", retired, n)
	}
}
