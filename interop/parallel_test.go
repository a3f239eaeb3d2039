package interop_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// notes is a format of lines "session text", in files that each name several
// sessions, in any order.
type notes struct{}

func (notes) Name() string                      { return "notes" }
func (notes) Detect(_ string, head []byte) bool { return strings.HasPrefix(string(head), "s") }

func (notes) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (r interop.Result, err error) {
	f, err := src.Open()
	if err != nil {
		return r, err
	}
	defer f.Close()
	for {
		var session, text string
		if _, err := fmt.Fscan(f, &session, &text); err != nil {
			return r, nil
		}
		r.Records++
		if err := note(ctx, log, session, text, &r); err != nil {
			return r, err
		}
	}
}

func note(ctx context.Context, log *eventlog.Log, session, text string, r *interop.Result) error {
	s, err := interop.OpenSession(ctx, log, session, func(*event.Event) error { return nil })
	if err != nil {
		return err
	}
	r.Touch(session)
	key := interop.FixedKey(session, text)
	if _, ok := s.Find(key); ok {
		r.Present++
		return nil
	}
	e := event.UserMessage(text)
	s.Add(key, time.Unix(0, 0).UTC(), e)
	if err := s.Flush(ctx); err != nil {
		return err
	}
	r.Imported++
	r.Events += s.Written()
	return nil
}

// Files that are imported at the same time may write to the same sessions, in
// whatever order each of them names these.
func TestFilesThatShareSessions(t *testing.T) {
	const n, rounds = 12, 20
	contents := map[string]string{}
	for i := range n {
		var b strings.Builder
		for at := range n {
			session := at
			if i%2 == 1 {
				session = n - 1 - at
			}
			fmt.Fprintf(&b, "s%d file%d\ns%d all\n", session, i, session)
		}
		contents[fmt.Sprintf("f%02d", i)] = b.String()
	}
	dir := files(t, contents)
	for range rounds {
		log := eventlog.Open(memory.New())
		var told []string
		table, err := interop.Import(t.Context(), log, []interop.Format{notes{}}, []string{dir}, interop.Options{
			Progress: func(row interop.Row) { told = append(told, row.Path) },
		})
		if err != nil {
			t.Fatal(err)
		}
		total := table.Total()
		if want := n * (n + 1); total.Imported != want || total.Events != want || total.Records != 2*n*n || total.Present != 2*n*n-want {
			t.Errorf("total is %+v, want %d events", total, want)
		}
		for i, row := range table.Rows {
			if want := filepath.Join(dir, fmt.Sprintf("f%02d", i)); row.Path != want || len(row.Sessions) != n {
				t.Errorf("row %d is %+v", i, row)
			}
		}
		if len(told) != n {
			t.Errorf("told of %v", told)
		}
		log.Close()
	}
}

// An import that is canceled begins no more files, and says so.
func TestCanceledImport(t *testing.T) {
	contents := map[string]string{}
	for i := range 50 {
		contents[fmt.Sprintf("f%02d", i)] = fmt.Sprintf("s%d hello", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := eventlog.Open(memory.New())
	defer log.Close()
	table, err := interop.Import(ctx, log, []interop.Format{notes{}}, []string{files(t, contents)}, interop.Options{
		Progress: func(interop.Row) { cancel() },
	})
	if err == nil || ctx.Err() == nil || len(table.Rows) == 0 || len(table.Rows) == 50 {
		t.Errorf("%d rows, error %v", len(table.Rows), err)
	}
}

// lined is a format whose files say which lane they are of.
type lined struct{ fake }

func (lined) Lane(head []byte) string { return string(head[len("one "):]) }

// Files of one lane are imported by path.
func TestLanes(t *testing.T) {
	contents := map[string]string{}
	for i := range 30 {
		contents[fmt.Sprintf("f%02d", i)] = fmt.Sprintf("one %c", 'a'+i%3)
	}
	dir := files(t, contents)
	for range 20 {
		var order journal
		if _, err := run(t, []interop.Format{lined{fake{name: "one", imported: &order}}}, dir); err != nil {
			t.Fatal(err)
		}
		last := map[string]string{}
		for _, file := range order.files {
			lane := contents[file]
			if file < last[lane] {
				t.Fatalf("%s is imported after %s, both of lane %q", file, last[lane], lane)
			}
			last[lane] = file
		}
		if len(order.files) != len(contents) {
			t.Fatalf("%d files were imported", len(order.files))
		}
	}
}

// crossed is a format of files "lane", of which the first of lane a writes to the
// session that the one of lane b has claimed meanwhile.
type crossed struct {
	claimed, refused chan struct{} // what happened
	tries            *atomic.Int32 // of the first of lane a
	done             *journal
}

func (crossed) Name() string               { return "crossed" }
func (crossed) Detect(string, []byte) bool { return true }
func (crossed) Lane(head []byte) string    { return string(head) }

func (c crossed) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (r interop.Result, err error) {
	r.Records++
	switch name := filepath.Base(src.Name); {
	case name == "3":
		err = note(ctx, log, "s", name, &r)
		close(c.claimed)
		<-c.refused
	case name == "1" && c.tries.Add(1) == 1:
		<-c.claimed
		err = note(ctx, log, "s", name, &r)
		close(c.refused)
	case name == "1":
		err = note(ctx, log, "s", name, &r)
	default:
		err = note(ctx, log, "other", name, &r)
	}
	if err == nil {
		c.done.note(filepath.Base(src.Name))
	}
	return r, err
}

// A file that has to wait for a later one that claimed its session keeps the rest of
// its lane waiting.
func TestTheRestOfALaneWaits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	c := crossed{claimed: make(chan struct{}), refused: make(chan struct{}), tries: new(atomic.Int32), done: &journal{}}
	dir := files(t, map[string]string{"1": "a", "2": "a", "3": "b"})
	log := eventlog.Open(memory.New())
	defer log.Close()
	table, err := interop.Import(t.Context(), log, []interop.Format{c}, []string{dir}, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"3", "1", "2"}, c.done.files); diff != "" || c.tries.Load() != 2 {
		t.Errorf("the first was tried %d times, the order is (-want +got):\n%s", c.tries.Load(), diff)
	}
	for i, row := range table.Rows {
		if row.Imported != 1 || filepath.Base(row.Path) != fmt.Sprint(i+1) {
			t.Errorf("row %d is %+v", i, row)
		}
	}
}
