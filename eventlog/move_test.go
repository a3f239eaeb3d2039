package eventlog_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// grown is a log with a parent of three events, a fork of it, a fork of that,
// and a session that has nothing to do with them.
func grown(t *testing.T, store eventlog.Store) *eventlog.Log {
	l := openLog(t, store)
	b := busy{t: t, log: l, acked: map[string]eventlog.Head{}}
	head, err := l.Append(t.Context(), "parent", eventlog.New, userSays(t, "1"), userSays(t, "2"), userSays(t, "3"))
	if err == nil {
		err = b.fork(t.Context(), "child", "parent", head)
	}
	if err == nil {
		head, err = l.Head(t.Context(), "child")
	}
	if err == nil {
		err = b.fork(t.Context(), "grandchild", "child", head)
	}
	if err == nil {
		_, err = l.Append(t.Context(), "other", eventlog.New, userSays(t, "hello"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bring copies the lines of a session into a store as they are, whatever they
// rest on.
func bring(t *testing.T, to eventlog.Store, from *eventlog.Log, session string) {
	var lines []eventlog.Event
	for e, err := range from.Store().Read(t.Context(), session, eventlog.Span{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, e)
	}
	if err := to.Append(t.Context(), session, eventlog.Head{}, lines, false); err != nil {
		t.Fatal(err)
	}
}

// A session that is named brings what it rests on, and nothing else.
func TestConvertNamedSessions(t *testing.T) {
	for from, open := range stores {
		for to, openTo := range stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				src, dst := grown(t, open(t.TempDir())), openLog(t, openTo(t.TempDir()))
				for range 2 {
					var order []string
					for s, err := range eventlog.Convert(t.Context(), dst, src, "grandchild") {
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
				for s, err := range eventlog.Convert(t.Context(), dst, src, "nobody") {
					var source *eventlog.SourceError
					if !errors.As(err, &source) || !errors.Is(err, eventlog.ErrNotFound) || s.Session != "nobody" {
						t.Errorf("one that is not there: %+v, %v", s, err)
					}
				}
			})
		}
	}
}

// A fork whose past is gone, or is not the one that was forked, is not exported:
// nothing could import it.
func TestExportNeedsThePast(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			src := grown(t, open(t.TempDir()))
			l := openLog(t, open(t.TempDir()))
			bring(t, l.Store(), src, "child")
			var text bytes.Buffer
			if err := l.Export(t.Context(), &text, "child"); !errors.Is(err, eventlog.ErrNotFound) || text.Len() > 0 {
				t.Errorf("without a parent: %v, %d bytes", err, text.Len())
			}
			for _, said := range []string{"1", "2", "3"} {
				if _, err := l.Append(t.Context(), "parent", eventlog.Any, userSays(t, said)); err != nil {
					t.Fatal(err)
				}
				if err := l.Export(t.Context(), &text, "child"); !errors.Is(err, eventlog.ErrCorrupt) || text.Len() > 0 {
					t.Errorf("with another parent up to %s: %v, %d bytes", said, err, text.Len())
				}
			}
			if err := src.Export(t.Context(), &text, "grandchild"); err != nil {
				t.Errorf("as it was: %v", err)
			}
		})
	}
}

// An error of Import names the line, and the session once.
func TestImportErrorsAreLocated(t *testing.T) {
	src := grown(t, stores["jsonl"](t.TempDir()))
	var text bytes.Buffer
	if err := src.Export(t.Context(), &text, "grandchild"); err != nil {
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
		for kind, open := range stores {
			t.Run(name+" "+kind, func(t *testing.T) {
				_, err := openLog(t, open(t.TempDir())).Import(t.Context(), strings.NewReader(strings.Join(test.stream, "")))
				if err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("got %v, want %s…", err, test.want)
				}
			})
		}
	}
}
