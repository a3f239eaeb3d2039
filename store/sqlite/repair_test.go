package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// logOver opens a log over a store and closes it at the end of the test.
func logOver(t testing.TB, s eventlog.Store) *eventlog.Log {
	t.Helper()
	l := eventlog.Open(s)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// Repair never writes to a database with a damaged page. It can copy the readable
// events to another store, including rows that no index refers to.
func TestRepairFromADamagedPage(t *testing.T) {
	for name, pick := range map[string]func(page, line []byte) bool{
		"page of the table": func(page, line []byte) bool { return bytes.Contains(page, line) },
		"page of the index": func(page, _ []byte) bool { return page[0] == 0x0a && int(page[3])<<8+int(page[4]) > 200 },
	} {
		t.Run(name, func(t *testing.T) {
			s, pages := damagedPages(t, pick)
			if pages == 0 {
				t.Fatal("no such page")
			}
			must(t, s.Close())
			before, err := os.ReadFile(s.Path())
			must(t, err)
			writing := logOver(t, New(s.Path()))
			_, err = repair.Session(t.Context(), writing, "b", repair.Options{InPlace: true})
			want(t, eventlog.ErrCorrupt, err)
			must(t, writing.Close())
			after, err := os.ReadFile(s.Path())
			must(t, err)
			if !bytes.Equal(before, after) || len(keptCopies(t, s.Path())) > 0 {
				t.Error("the rejected repair left files")
			}
			into := logOver(t, memory.New())
			done, err := repair.Session(t.Context(), logOver(t, New(s.Path(), Options{ReadOnly: true})), "b", repair.Options{Into: into})
			must(t, err)
			lost := int64(0)
			for _, r := range done.Lost {
				lost += r.To - r.From + 1
			}
			report, err := verify.Session(t.Context(), into, "b")
			must(t, err)
			if done.As != "b" || done.Kept+lost != 400 || lost > 20 || report.Events != 400 || len(report.Defects) > 0 {
				t.Errorf("kept %d, lost %d as %q: %+v", done.Kept, lost, done.As, report)
			}
		})
	}
}

func keptCopies(t testing.TB, path string) []string {
	t.Helper()
	names, err := filepath.Glob(path + ".damaged-*")
	must(t, err)
	return names
}

// The text index may be stale when a page is damaged. Updating the index during a
// rejected repair leaves the events unchanged.
func TestRefusedRepairWhileTheIndexIsBehind(t *testing.T) {
	s, pages := damagedPages(t, func(page, _ []byte) bool { return page[0] == 0x0a && int(page[3])<<8+int(page[4]) > 200 })
	if pages == 0 {
		t.Fatal("no such page")
	}
	must(t, s.Close())
	change(t, s.Path(), "UPDATE search_state SET rules = 0, watermark = 1")
	store := New(s.Path())
	writing := logOver(t, store)
	for range 2 {
		_, err := repair.Session(t.Context(), writing, "b", repair.Options{InPlace: true})
		want(t, eventlog.ErrCorrupt, err)
		must(t, search.Index(t.Context(), writing, false))
	}
	if events, bad := countFragments(t, store); events != 400 || bad != 0 || len(keptCopies(t, s.Path())) > 0 {
		t.Errorf("%d events and %d bad rows, copies %v", events, bad, keptCopies(t, s.Path()))
	}
}

// The backup copy has the lines of all rows. A redaction or a removal of the session
// deletes the copy.
func TestReplaceKeepsACopy(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	add(t, s, "a", event.Head{}, 9, "words")
	add(t, s, "other", event.Head{}, 2, "words")
	must(t, s.Close())
	change(t, path, `UPDATE events SET line = x'7b00ff' WHERE seq = 5`)
	l := logOver(t, New(path))
	done, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
	must(t, err)
	b, err := os.ReadFile(done.Copy)
	must(t, err)
	lines := strings.SplitAfter(string(b), "\n")
	if len(lines) != 10 || lines[4] != "{\x00\xff\n" || lines[9] != "" {
		t.Errorf("%d lines are kept, the fifth is %q", len(lines)-1, lines[4])
	}
	if !strings.HasPrefix(done.Copy, path+".damaged-") || !strings.HasSuffix(done.Copy, "-1.jsonl") {
		t.Errorf("kept at %s", done.Copy)
	}
	_, err = erase.Redact(t.Context(), l, "other", []int64{1}, erase.RedactOptions{Reason: "asked for"})
	must(t, err)
	if copies := keptCopies(t, path); len(copies) != 1 {
		t.Errorf("copies after a redaction elsewhere: %v", copies)
	}
	_, err = erase.Redact(t.Context(), l, "a", []int64{1}, erase.RedactOptions{Reason: "asked for"})
	must(t, err)
	if copies := keptCopies(t, path); len(copies) != 0 {
		t.Errorf("copies after a redaction: %v", copies)
	}
}

// A failed transaction changes no rows and leaves no copy.
func TestReplaceFails(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 3, "words")
	at, err := s.Version(t.Context(), "a")
	must(t, err)
	twice := eventChain("a", event.Head{}, 1, "other")
	_, err = s.Replace(t.Context(), "a", at, func(yield func(event.Event, error) bool) {
		for range 2 { // the database refuses the second one
			yield(twice[0], nil)
		}
	})
	if err == nil {
		t.Error("one seq twice was taken")
	}
	_, err = s.Replace(t.Context(), "a", at, func(func(event.Event, error) bool) {})
	if err == nil {
		t.Error("no events were taken")
	}
	if copies := keptCopies(t, path); len(copies) != 0 {
		t.Errorf("copies: %v", copies)
	}
	add(t, s, "a", head, 1, "words")
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 4 {
		t.Errorf("seqs %v", got)
	}
}
