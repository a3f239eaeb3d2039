package claude_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// drawnCopies are files that have exchanges in common.
type drawnCopies struct {
	*home
	sessions []string
	files    map[string]transcript
	of       map[string][]int // the exchanges of each file
}

// drawCopies draws files, and imports a part of them in some order and pieces.
func drawCopies(t *testing.T, r *rapid.T) drawnCopies {
	d := drawnCopies{home: &home{r, t.TempDir(), importtest.NewLog(r)}, files: map[string]transcript{}, of: map[string][]int{}}
	for i := range rapid.IntRange(1, 4).Draw(r, "sessions") {
		session := fmt.Sprintf("s%d", i)
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 1, 6, rapid.ID).Draw(r, "exchanges")
		slices.Sort(numbers)
		parent := "null"
		for _, n := range numbers {
			d.files[session] = append(d.files[session], exchangeAfter(n, parent)...)
			parent = fmt.Sprintf(`"a%d"`, n)
		}
		d.sessions, d.of[session] = append(d.sessions, session), numbers
	}
	imported := map[string]int{}
	for range rapid.IntRange(0, 4).Draw(r, "imports before") {
		session := rapid.SampledFrom(d.sessions).Draw(r, "session")
		n := rapid.IntRange(imported[session], len(d.files[session])).Draw(r, "lines")
		if imported[session] = n; n > 0 {
			d.write(session, d.files[session][:n])
			d.load(session)
		}
	}
	for _, session := range d.sessions {
		d.write(session, d.files[session])
	}
	return d
}

// Law: each answer counts once, and each session has the history of its file, whatever
// exchanges the files have in common, and in whatever order and pieces they are imported.
func TestAnyCopiesCountOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawCopies(t, r)
		d.load()
		counts, tokens := map[int]bool{}, int64(0)
		for _, session := range d.sessions {
			var want []string
			for _, n := range d.of[session] {
				want = append(want, fmt.Sprintf("Question %d", n), fmt.Sprintf("Answer %d", n))
				if !counts[n] {
					tokens += int64(n) * 1000
				}
				counts[n] = true
			}
			d.texts(session, want...)
		}
		d.spent(tokens, int64(len(counts)))
	})
}

// Law: what was erased does not come back with a copy.
func TestNothingErasedComesBackWithAnyCopies(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawCopies(t, r)
		text := fmt.Sprintf(" %d", rapid.IntRange(1, 6).Draw(r, "erased"))
		has := func(e *event.Event) bool {
			return e.Type.Name() == event.MessageAdded && strings.Contains(string(e.Data), text)
		}
		erased := map[string]bool{}
		for _, role := range []string{"Question", "Answer"} {
			n := importtest.Redact(r, d.log, func(e *event.Event) bool { return has(e) && strings.Contains(string(e.Data), role+text) })
			erased[role] = n > 0
		}
		d.load()
		for _, session := range importtest.Sessions(r, d.log) {
			for _, e := range importtest.Events(r, d.log, session) {
				for role := range erased {
					if erased[role] && has(&e) && strings.Contains(string(e.Data), role+text) {
						r.Errorf("%s has the erased text again: %s", session, e.Data)
					}
				}
			}
		}
		if again := d.load(); again.Events != 0 {
			r.Errorf("another import adds %d events", again.Events)
		}
	})
}

// An import of a new session reads the sessions of its time only, and while the file grows, new
// lines do not list the sessions of the log.
func TestImportReadsSessionsOfItsTime(t *testing.T) {
	h := newHome(t)
	h.write("other", exchanges(1))
	h.write("old", exchangeAfter(600, "null"))
	h.load()
	h.write("new", exchanges(2))
	count := &counting{Store: h.log.Store(), reads: map[string]int{}}
	log := eventlog.Open(count)
	load := func() {
		t.Helper()
		path := filepath.Join(h.dir, "new.jsonl")
		if _, err := interop.Import(t.Context(), log, []interop.Format{claude.Format{}}, []string{path}, interop.Options{Growing: true}); err != nil {
			t.Fatal(err)
		}
	}
	load()
	if count.lists != 1 || count.reads["other"] != 1 || count.reads["old"] != 0 {
		t.Errorf("a new session: %d lists, reads %v", count.lists, count.reads)
	}
	count.lists, count.reads = 0, map[string]int{}
	h.write("new", exchanges(2, 3))
	load()
	if count.lists != 0 || count.reads["other"] != 0 || count.reads["old"] != 0 {
		t.Errorf("new lines: %d lists, reads %v", count.lists, count.reads)
	}
}

// counting is a store that counts lists of sessions, and reads of each session.
type counting struct {
	eventlog.Store
	lists int
	reads map[string]int
}

func (c *counting) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	c.lists++
	return c.Store.Sessions(ctx)
}

func (c *counting) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	c.reads[session]++
	return c.Store.Read(ctx, session, r)
}
