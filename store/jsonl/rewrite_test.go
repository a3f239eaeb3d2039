package jsonl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// other returns an event that can replace e: the same seq, other data.
func other(t testing.TB, events []event.Event, seq int64) event.Event {
	t.Helper()
	return seal(t, events[:seq-1], nil)
}

func TestRewrite(t *testing.T) {
	events := sealed(t, "s", 1, 1, 1, 1)
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, events)
	must(t, os.WriteFile(filepath.Join(dir, "s.torn-7"), []byte("note 2, torn"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "s.torn-7.torn-9"), []byte("of session s.torn-7"), 0o600))
	fresh, added := other(t, events, 2), seal(t, events, nil)
	must(t, s.Rewrite(t.Context(), "s", head(events), []event.Event{fresh}, []event.Event{added}))
	want := content([]event.Event{events[0], fresh, events[2], events[3], added})
	got, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("the file holds\n%s\nwant\n%s", got, want)
	}
	if names := fileNames(t, dir); names != "s.jsonl s.torn-7.torn-9" {
		t.Errorf("the directory has %s", names)
	}
	next := seal(t, append(events, added), nil)
	must(t, s.Append(t.Context(), "s", added.Head(), []event.Event{next}, false))
	wantSeqs(t, s, "s", eventlog.Span{From: 4}, 4, 5, 6)
}

func TestRewriteRefuses(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{FS: f})
	wantErr(t, s.Rewrite(t.Context(), "s", head(events), nil, nil), eventlog.ErrNotFound)
	appendAll(t, s, "s", event.Head{}, events)
	wantErr(t, s.Rewrite(t.Context(), "s", head(events[:1]), nil, nil), eventlog.ErrConflict)
	strange := seal(t, events, nil) // has a seq that does not exist
	wantErr(t, s.Rewrite(t.Context(), "s", head(events), []event.Event{strange}, nil), eventlog.ErrEventNotFound)
	for _, op := range []string{"write", "sync", "rename"} {
		f.set(failing(op))
		err := s.Rewrite(t.Context(), "s", head(events), []event.Event{other(t, events, 1)}, nil)
		if err == nil || errors.Is(err, eventlog.ErrUnknownOutcome) {
			t.Errorf("failed %s: %v, want a plain error", op, err)
		}
	}
	f.set(failing("syncdir"))
	err := s.Rewrite(t.Context(), "s", head(events), nil, []event.Event{seal(t, events, nil)})
	wantErr(t, err, eventlog.ErrUnknownOutcome)
	f.set(nil)
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3)
	if names := fileNames(t, dir); names != "s.jsonl" {
		t.Errorf("the directory has %s", names)
	}
}

// A handle with the replaced file open continues in the new one.
func TestRewriteUnderAnotherHandle(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	appendAll(t, a, "s", event.Head{}, events[:1])
	appendAll(t, b, "s", head(events[:1]), events[1:])
	added := seal(t, events, nil)
	must(t, a.Rewrite(t.Context(), "s", head(events), nil, []event.Event{added}))
	err := b.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != added.Head() {
		t.Fatalf("got %v, want a conflict at %v", err, added.Head())
	}
	next := seal(t, append(events, added), nil)
	must(t, b.Append(t.Context(), "s", added.Head(), []event.Event{next}, false))
	wantSeqs(t, a, "s", eventlog.Span{}, 1, 2, 3, 4)
}

func TestRemoveSession(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	s := open(t, dir)
	wantErr(t, s.RemoveSession(t.Context(), "s", event.Head{}), eventlog.ErrNotFound)
	write(t, dir, "s", append(content(events), "torn"...))
	wantErr(t, s.RemoveSession(t.Context(), "s", head(events[:1])), eventlog.ErrConflict)
	must(t, s.RemoveSession(t.Context(), "s", head(events)))
	if names := fileNames(t, dir); names != "" {
		t.Errorf("the directory has %s", names)
	}
	wantErr(t, s.RemoveSession(t.Context(), "s", head(events)), eventlog.ErrNotFound)
	appendAll(t, s, "s", event.Head{}, sealed(t, "s", 1))
	err := s.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false)
	wantErr(t, err, eventlog.ErrConflict)
}

func TestHostileSessions(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	s := open(t, dir, Options{FS: newFaults(dir)})
	ids := []string{
		".", "..", "../up", "/etc/passwd", "a", "A", "a.torn-0", "a.jsonl", ".lock", "blobs", "blobs/00", "tmp-x", "~", "%2e", "con", "a\\b",
		strings.Repeat("é", 100), strings.Repeat("E", 200), strings.Repeat("E", 199) + "F",
	}
	for _, id := range ids {
		appendAll(t, s, id, event.Head{}, sealed(t, id, 1, 1))
	}
	if names := fileNames(t, parent); names != "store" {
		t.Errorf("outside the store there is %s", names)
	}
	listed := map[string]bool{}
	last := ""
	for info, err := range s.Sessions(t.Context()) {
		must(t, errors.Join(err, info.Err))
		if info.ID <= last || info.Events() != 2 {
			t.Errorf("listed %q with %d events after %q", info.ID, info.Events(), last)
		}
		listed[info.ID], last = true, info.ID
	}
	if len(listed) != len(ids) {
		t.Errorf("%d sessions listed, want %d", len(listed), len(ids))
	}
	for _, id := range ids {
		wantSeqs(t, s, id, eventlog.Span{}, 1, 2)
	}
	wantErr(t, s.Append(t.Context(), "", event.Head{}, sealed(t, "s", 1), false), event.ErrInvalidSession)
}

// A damaged session has no head to compare. A file with another session's events is not
// removed.
func TestRemoveDamagedSession(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	bad := content(events)
	bad[len(bad)/4] ^= 1
	for name, tt := range map[string]struct {
		content []byte
		expect  event.Head
		want    error
	}{
		"damaged":           {bad, event.Head{}, nil},
		"damaged, a head":   {bad, head(events), eventlog.ErrCorrupt},
		"sound":             {content(events), event.Head{}, eventlog.ErrConflict},
		"another session's": {content(sealed(t, "other", 1, 1)), event.Head{}, eventlog.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			write(t, dir, "s", tt.content)
			if tt.want != nil {
				wantErr(t, s.RemoveSession(t.Context(), "s", tt.expect), tt.want)
			} else {
				must(t, s.RemoveSession(t.Context(), "s", tt.expect))
			}
			if left := fileNames(t, dir) != ""; left != (tt.want != nil) {
				t.Errorf("the directory has %q", fileNames(t, dir))
			}
		})
	}
}
