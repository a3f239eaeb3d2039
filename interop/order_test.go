package interop_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func (notes) Declare(src interop.Source) (ids interop.IDs) {
	f, err := src.Open()
	if err != nil {
		return ids
	}
	defer f.Close()
	for {
		var session, text string
		if _, err := fmt.Fscan(f, &session, &text); err != nil {
			return ids
		}
		ids.Owns = append(ids.Owns, session)
	}
}

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

// Files that own the same sessions are imported one after the other, in whatever
// order each of them names the sessions.
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
