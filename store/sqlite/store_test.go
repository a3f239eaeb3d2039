package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

func TestReadSelectsSpan(t *testing.T) {
	s := open(t, tempPath(t))
	must(t, s.Append(t.Context(), "a", event.Head{}, eventChain("a", event.Head{}, 2500, "x"), false))
	for _, c := range []struct {
		name        string
		span        eventlog.Span
		first, last int64
		count       int
	}{
		{"all", eventlog.Span{}, 1, 2500, 2500},
		{"all backward", eventlog.Span{Backward: true}, 2500, 1, 2500},
		{"from", eventlog.Span{From: 2490}, 2490, 2500, 11},
		{"between, over a page", eventlog.Span{From: 10, To: 1300}, 10, 1300, 1291},
		{"last", eventlog.Span{Backward: true, Limit: 3}, 2500, 2498, 3},
		{"limited", eventlog.Span{From: 5, Limit: 1200}, 5, 1204, 1200},
		{"backward to", eventlog.Span{To: 70, Backward: true, Limit: 69}, 70, 2, 69},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := seqs(t, s, "a", c.span)
			if len(got) != c.count || got[0] != c.first || got[len(got)-1] != c.last {
				t.Fatalf("got %d events from %d to %d, want %d from %d to %d",
					len(got), got[0], got[len(got)-1], c.count, c.first, c.last)
			}
		})
	}
	if got := seqs(t, s, "a", eventlog.Span{From: 2501}); len(got) != 0 {
		t.Errorf("beyond the head: got %v", got)
	}
}

func TestReadKeepsHeadOfItsStart(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 3, "x")
	n := 0
	for e, err := range s.Read(t.Context(), "a", eventlog.Span{}) {
		must(t, err)
		n++
		if e.Seq == 1 {
			add(t, s, "a", head, 1, "x") // writers are not blocked either
		}
	}
	if n != 3 {
		t.Errorf("read %d events, want the 3 of the start", n)
	}
}

func TestReadOfSessionRemovedMeanwhile(t *testing.T) {
	s := open(t, tempPath(t))
	events := eventChain("a", event.Head{}, 500, "x")
	must(t, s.Append(t.Context(), "a", event.Head{}, events, false))
	var last error
	for _, err := range s.Read(t.Context(), "a", eventlog.Span{}) {
		if last == nil && err == nil {
			if e := s.RemoveSession(t.Context(), "a", headOf(events)); e == nil {
				add(t, s, "a", event.Head{}, 1, "again")
			}
		}
		last = err
	}
	want(t, eventlog.ErrNotFound, last)
}

func TestReadEndsWithContext(t *testing.T) {
	s := open(t, tempPath(t))
	must(t, s.Append(t.Context(), "a", event.Head{}, eventChain("a", event.Head{}, 100, "x"), false))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range s.Read(ctx, "a", eventlog.Span{}) {
		if last = err; err == nil {
			n++
			cancel()
		}
	}
	want(t, context.Canceled, last)
	if n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	must(t, os.WriteFile(garbage, bytes.Repeat([]byte("no database\n"), 1000), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	makeDatabase(t, foreign, "CREATE TABLE t (x)")
	newer := filepath.Join(dir, "newer.db")
	must(t, New(newer).Close())
	s := New(newer)
	add(t, s, "a", event.Head{}, 1, "x")
	must(t, s.Close())
	makeDatabase(t, newer, "PRAGMA user_version = 8")

	for _, c := range []struct {
		path, text string
		target     error
	}{
		{garbage, "open sqlite store " + garbage + ": not a database", eventlog.ErrCorrupt},
		{foreign, "a database of another program", eventlog.ErrCorrupt},
		{newer, "sqlite schema version 8 is newer than 7", event.ErrVersion},
	} {
		for _, readOnly := range []bool{false, true} {
			before, err := os.ReadFile(c.path)
			must(t, err)
			_, err = collect(open(t, c.path, Options{ReadOnly: readOnly}).Sessions(t.Context()))
			want(t, c.target, err)
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q lacks %q", err, c.text)
			}
			after, err := os.ReadFile(c.path)
			must(t, err)
			if !bytes.Equal(before, after) {
				t.Errorf("%s was changed (read-only: %v)", c.path, readOnly)
			}
		}
	}
	var v *event.VersionError
	if err := open(t, newer).Append(t.Context(), "a", event.Head{}, nil, false); !errors.As(err, &v) || v.What != "sqlite schema" || v.Got != 8 {
		t.Errorf("got %v", err)
	}
}

// makeDatabase runs SQL on a file, with a connection of its own.
func makeDatabase(t testing.TB, path, sql string) {
	t.Helper()
	c, err := dial(path, "")
	must(t, err)
	must(t, c.run(sql))
	must(t, c.close())
}

func TestOpenTriesAgain(t *testing.T) {
	dir := t.TempDir()
	blocker := filepath.Join(dir, "x")
	must(t, os.WriteFile(blocker, nil, 0o600))
	s := open(t, filepath.Join(blocker, "s.db"))
	if err := s.Append(t.Context(), "a", event.Head{}, nil, false); err == nil {
		t.Fatal("a file served as a folder")
	}
	must(t, os.Remove(blocker))
	add(t, s, "a", event.Head{}, 1, "x")
}

func TestFilesArePrivate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folders")
	s := open(t, filepath.Join(folder, "s?100%#.db"))
	add(t, s, "a", event.Head{}, 1, "x")
	_, unlock, err := s.Lock(t.Context(), true)
	must(t, err)
	unlock()
	got := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(filepath.Dir(folder), func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		got[d.Name()] = info.Mode()
		return nil
	}))
	wanted := map[string]fs.FileMode{
		"new": fs.ModeDir | 0o700, "folders": fs.ModeDir | 0o700, "s?100%#.db": 0o600,
		"s?100%#.db-wal": 0o600, "s?100%#.db-shm": 0o600, "s?100%#.db-lock": 0o600,
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
}

func TestReadOnly(t *testing.T) {
	path := tempPath(t)
	missing := open(t, path, Options{ReadOnly: true})
	_, err := collect(missing.Sessions(t.Context()))
	want(t, fs.ErrNotExist, err)

	s := New(path)
	head := add(t, s, "a", event.Head{}, 3, "x")
	must(t, s.Close())
	before := names(t, filepath.Dir(path))

	ro := open(t, path, Options{ReadOnly: true})
	if got := seqs(t, ro, "a", eventlog.Span{}); len(got) != 3 {
		t.Errorf("got %v", got)
	}
	if _, err := ro.Version(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	want(t, eventlog.ErrReadOnly, ro.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false))
	want(t, eventlog.ErrReadOnly, ro.RemoveSession(t.Context(), "a", head))
	_, _, err = ro.PutBlob(t.Context(), strings.NewReader("x"))
	want(t, eventlog.ErrReadOnly, err)
	_, _, err = ro.Lock(t.Context(), true)
	want(t, eventlog.ErrReadOnly, err)
	if diff := cmp.Diff(before, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("reading created files (-before +after):\n%s", diff)
	}
}

// A reader opened on an unused file sees the writes of a later writer, during and
// after the writer's life.
func TestReadOnlyFollowsWriter(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	must(t, s.Close())
	ro := open(t, path, Options{ReadOnly: true})
	for want := 1; want < 12; want++ {
		if got := seqs(t, ro, "a", eventlog.Span{}); len(got) != want {
			t.Fatalf("got %d events, want %d", len(got), want)
		}
		w := New(path)
		head = add(t, w, "a", head, 1, "x")
		if got := seqs(t, ro, "a", eventlog.Span{}); len(got) != want+1 {
			t.Fatalf("with the writer: got %d events, want %d", len(got), want+1)
		}
		must(t, w.Close())
	}
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestClosed(t *testing.T) {
	s := New(tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	must(t, s.Close())
	must(t, s.Close())
	want(t, eventlog.ErrClosed, s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false))
	_, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	want(t, eventlog.ErrClosed, err)
	_, err = s.Version(t.Context(), "a")
	want(t, eventlog.ErrClosed, err)
	want(t, eventlog.ErrClosed, New(tempPath(t)).closedAppend())
}

// closedAppend appends to a store that was closed before its first use.
func (s *Store) closedAppend() error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.Append(context.Background(), "a", event.Head{}, nil, false)
}

// A store uses its policy for normal appends and level Always for durable appends.
func TestSyncPolicy(t *testing.T) {
	for _, options := range []Options{{}, {SyncAtCheckpoint: true}, {NoSync: true}} {
		policy := options.level()
		t.Run(policy.pragma(), func(t *testing.T) {
			path := tempPath(t)
			s := New(path, options)
			head := add(t, s, "a", event.Head{}, 2, "x")
			if s.writer.level != policy {
				t.Errorf("level %v after an append", s.writer.level)
			}
			events := eventChain("a", head, 1, "x")
			must(t, s.Append(t.Context(), "a", head, events, true))
			if s.writer.level != always {
				t.Errorf("level %v after a durable append", s.writer.level)
			}
			add(t, s, "a", headOf(events), 1, "x")
			if s.writer.level != policy || s.writer.unsyncedCommits != (policy != always) {
				t.Errorf("level %v, loose %v after another append", s.writer.level, s.writer.unsyncedCommits)
			}
			must(t, s.Close())
			if got := seqs(t, open(t, path), "a", eventlog.Span{}); len(got) != 4 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	path := tempPath(t)
	s, other := open(t, path), open(t, path)
	_, err := s.Version(t.Context(), "a")
	want(t, eventlog.ErrNotFound, err)
	version := func() uint64 {
		v, err := s.Version(t.Context(), "a")
		must(t, err)
		return v
	}
	head := add(t, other, "a", event.Head{}, 1, "x")
	seen := map[uint64]bool{version(): true}
	add(t, s, "b", event.Head{}, 1, "x")
	if !seen[version()] {
		t.Error("another session's append changed the version")
	}
	changed := func(what string) {
		t.Helper()
		if v := version(); seen[v] {
			t.Errorf("%s did not change the version", what)
		} else {
			seen[v] = true
		}
	}
	head = add(t, s, "a", head, 1, "x")
	changed("an append")
	events, err := collect(s.Read(t.Context(), "a", eventlog.Span{Limit: 1}))
	must(t, err)
	must(t, other.Rewrite(t.Context(), "a", head, []event.Event{withText(events[0], "y")}, nil))
	changed("a rewrite")
	must(t, other.RemoveSession(t.Context(), "a", head))
	_, err = s.Version(t.Context(), "a")
	want(t, eventlog.ErrNotFound, err)
	add(t, other, "a", event.Head{}, 1, "x")
	changed("removal and creation")
}

func TestLock(t *testing.T) {
	path := tempPath(t)
	s, other := open(t, path), open(t, path)
	_, unlock1, err := s.Lock(t.Context(), false)
	must(t, err)
	_, unlock2, err := other.Lock(t.Context(), false)
	must(t, err)
	for _, store := range []*Store{s, other} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, _, err = store.Lock(ctx, true)
		want(t, context.DeadlineExceeded, err)
		cancel()
	}
	unlock1()
	unlock2()
	_, unlock, err := s.Lock(t.Context(), true)
	must(t, err)
	got := make(chan error)
	for _, store := range []*Store{s, other} {
		go func() {
			_, unlock, err := store.Lock(context.Background(), false)
			if err == nil {
				unlock()
			}
			got <- err
		}()
	}
	select {
	case err := <-got:
		t.Fatalf("a shared lock beside an exclusive one: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	unlock()
	must(t, <-got)
	must(t, <-got)
}
