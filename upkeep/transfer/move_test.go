package transfer_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/upkeep/transfer"
)

// grown is a log with a parent of three events, a fork of it, a fork of that,
// and a session that has nothing to do with them.
func grown(t *testing.T, store eventlog.Store) *eventlog.Log {
	l := testkit.Open(t, store)
	head, err := l.Append(t.Context(), "parent", eventlog.New(), event.UserMessage("1"), event.UserMessage("2"), event.UserMessage("3"))
	if err == nil {
		_, err = testkit.Fork(t.Context(), l, "child", "parent", head.Seq)
	}
	if err == nil {
		head, err = l.Head(t.Context(), "child")
	}
	if err == nil {
		_, err = testkit.Fork(t.Context(), l, "grandchild", "child", head.Seq)
	}
	if err == nil {
		_, err = l.Append(t.Context(), "other", eventlog.New(), event.UserMessage("hello"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bring copies the lines of a session into a store verbatim, without parents and blobs.
func bring(t *testing.T, to eventlog.Store, from *eventlog.Log, session string) {
	var lines []event.Event
	for e, err := range from.Store().Read(t.Context(), session, eventlog.Span{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, e)
	}
	if err := to.Append(t.Context(), session, event.Head{}, lines, false); err != nil {
		t.Fatal(err)
	}
}

// Convert of a named session copies its parents and blobs, and nothing else.
func TestConvertNamedSessions(t *testing.T) {
	for from, open := range testkit.Stores {
		for to, openTo := range testkit.Stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				src, dst := grown(t, open(t.TempDir())), testkit.Open(t, openTo(t.TempDir()))
				for range 2 {
					var order []string
					for s, err := range transfer.Convert(t.Context(), dst, src, transfer.Options{Sessions: []string{"grandchild"}}) {
						if err != nil {
							t.Fatal(err)
						}
						order = append(order, s.Session)
					}
					if want := []string{"parent", "child", "grandchild"}; !slices.Equal(order, want) {
						t.Errorf("converted %q, want %q", order, want)
					}
				}
				if _, err := dst.Head(t.Context(), "other"); !errors.Is(err, eventlog.ErrNotFound) {
					t.Errorf("a session that was not named: %v", err)
				}
				for s, err := range transfer.Convert(t.Context(), dst, src, transfer.Options{Sessions: []string{"nobody"}}) {
					var source *transfer.SourceError
					if !errors.As(err, &source) || !errors.Is(err, eventlog.ErrNotFound) || s.Session != "nobody" {
						t.Errorf("one that is not there: %+v, %v", s, err)
					}
				}
			})
		}
	}
}

// A source that is behind the destination is named, and the other sessions are copied.
func TestConvertFromBehind(t *testing.T) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			src, dst := grown(t, open(t.TempDir())), testkit.Open(t, open(t.TempDir()))
			bring(t, dst.Store(), src, "other")
			if _, err := dst.Append(t.Context(), "other", eventlog.Any(), event.UserMessage("lost in the source")); err != nil {
				t.Fatal(err)
			}
			var failed, copied []string
			for s, err := range transfer.Convert(t.Context(), dst, src) {
				var source *transfer.SourceError
				switch {
				case err == nil:
					copied = append(copied, s.Session)
				case errors.As(err, &source) && strings.Contains(err.Error(), "ends at event 1") && strings.Contains(err.Error(), "has event 2"):
					failed = append(failed, s.Session)
				default:
					t.Fatal(err)
				}
			}
			if !slices.Equal(failed, []string{"other"}) || len(copied) != 3 {
				t.Errorf("copied %q, failed %q", copied, failed)
			}
		})
	}
}

// Export refuses a fork with a missing or different parent, because no log could import
// it.
func TestExportNeedsThePast(t *testing.T) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			src := grown(t, open(t.TempDir()))
			l := testkit.Open(t, open(t.TempDir()))
			bring(t, l.Store(), src, "child")
			var text bytes.Buffer
			if err := transfer.Export(t.Context(), l, &text, "child"); !errors.Is(err, eventlog.ErrNotFound) || text.Len() > 0 {
				t.Errorf("without a parent: %v, %d bytes", err, text.Len())
			}
			for _, said := range []string{"1", "2", "3"} {
				if _, err := l.Append(t.Context(), "parent", eventlog.Any(), event.UserMessage(said)); err != nil {
					t.Fatal(err)
				}
				if err := transfer.Export(t.Context(), l, &text, "child"); !errors.Is(err, eventlog.ErrCorrupt) || text.Len() > 0 {
					t.Errorf("with another parent up to %s: %v, %d bytes", said, err, text.Len())
				}
			}
			if err := transfer.Export(t.Context(), src, &text, "grandchild"); err != nil {
				t.Errorf("as it was: %v", err)
			}
		})
	}
}

// An error of Import names the line, and the session once.
func TestImportErrorsAreLocated(t *testing.T) {
	src := grown(t, testkit.Stores["jsonl"](t.TempDir()))
	var text bytes.Buffer
	if err := transfer.Export(t.Context(), src, &text, "grandchild"); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text.String(), "\n"), "\n")
	tests := map[string]struct {
		stream []string
		want   string
	}{
		"a line changed":     {[]string{lines[0], strings.Replace(lines[1], `"2"`, `"4"`, 1)}, "corrupt: line 2 at byte "},
		"a line missing":     {[]string{lines[0], lines[2]}, `line 2: corrupt: session "parent" (seq 2): `},
		"a parent missing":   {lines[3:], `line 1: session "child": fork point: `},
		"a fork's parent":    {slices.Concat(lines[:3], lines[5:]), `line 4: session "grandchild": fork point: `},
		"a line of others":   {append(slices.Clone(lines[:3]), `{"a":1}`), "line 4: not a line of a log"},
		"not the whole text": {[]string{text.String()[:text.Len()-30]}, "corrupt: line 7 at byte "},
	}
	for name, test := range tests {
		for kind, open := range testkit.Stores {
			t.Run(name+" "+kind, func(t *testing.T) {
				_, err := transfer.Import(t.Context(), testkit.Open(t, open(t.TempDir())), strings.NewReader(strings.Join(test.stream, "")))
				if err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("got %v, want %s…", err, test.want)
				}
			})
		}
	}
}
