package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/sysfile"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
)

// opened counts the opened sources of a format.
type opened struct {
	interop.Format
	n *atomic.Int64
}

func (o opened) Scope() importrun.Scope { return o.Format.(importrun.Scoped).Scope() }

func (o opened) Declare(src interop.Source) interop.IDs {
	return o.Format.(interop.Declarer).Declare(o.counted(src))
}

func (o opened) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return o.Format.Import(ctx, log, o.counted(src))
}

func (o opened) counted(src interop.Source) interop.Source {
	open := src.Open
	src.Open = func() (io.ReadCloser, error) {
		o.n.Add(1)
		return open()
	}
	return src
}

// source is a home with transcripts, and a log that imports them.
type source struct {
	t      *testing.T
	dir    string
	store  string
	log    *eventlog.Log
	format interop.Format
	reads  *atomic.Int64
}

// each runs a test over the stores that keep cursors.
func each(t *testing.T, format interop.Format, test func(*source)) {
	interop.SettleAtOnce(t)
	for name, open := range map[string]func(path string) eventlog.Store{
		"log":    func(path string) eventlog.Store { return jsonl.New(path) },
		"log.db": func(path string) eventlog.Store { return sqlite.New(path) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{t: t, dir: t.TempDir(), store: filepath.Join(t.TempDir(), name), reads: new(atomic.Int64)}
			s.log = eventlog.Open(open(s.store))
			s.format = opened{format, s.reads}
			t.Cleanup(func() { s.log.Close() })
			test(s)
		})
	}
}

func (s *source) path(name string) string { return filepath.Join(s.dir, name) }

// change changes a file, and waits until the clock of the file system has moved on.
func (s *source) change(name string, f func(path string) error) {
	s.t.Helper()
	path := s.path(name)
	before, _ := sysfile.Stat(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), f(path)); err != nil {
		s.t.Fatal(err)
	}
	for {
		after, err := sysfile.Stat(path)
		if err != nil || !after.ChangeTime.Equal(before.ChangeTime) {
			return
		}
		if err := os.Chtimes(path, after.ModTime, after.ModTime); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *source) write(name, content string) {
	s.t.Helper()
	s.change(name, func(path string) error { return os.WriteFile(path, []byte(content), 0o600) })
}

// load imports the home, and returns how many sources it opened.
func (s *source) load(opts ...interop.Options) (interop.Table, int64) {
	s.t.Helper()
	before := s.reads.Load()
	table, err := interop.Import(s.t.Context(), s.log, []interop.Format{s.format}, []string{s.dir}, opts...)
	if err != nil && !errors.Is(err, interop.ErrErased) && !errors.Is(err, interop.ErrHistory) {
		s.t.Fatal(err)
	}
	return table, s.reads.Load() - before
}

// line is a message of a Claude Code session.
func line(session, uuid, parent, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":%q,"timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":%q}}`+"\n", uuid, parent, session, text)
}

// An import opens no source that has not changed, and opens one that has, however it changed.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	each(t, claude.Format{}, func(s *source) {
		first := line("a", "a1", "", "First question") + line("a", "a2", "a1", "Second question")
		s.write("p/a.jsonl", first)
		s.write("q/b.jsonl", line("b", "b1", "", "Other question"))
		s.write("q/notes.txt", "no transcript")
		want, opened := s.load()
		if opened == 0 || want.Total().Imported != 3 {
			t.Fatalf("the first import opens %d sources: %+v", opened, want.Total())
		}
		for range 2 {
			again, opened := s.load()
			total := again.Total()
			if opened != 0 || total.Events != 0 || total.Records != 3 || total.Present != 3 || len(total.Sessions) != 2 || len(again.Skipped) != 1 {
				t.Errorf("an import of unchanged files opens %d sources: %+v, skipped %v", opened, total, again.Skipped)
			}
		}
		if _, opened := s.load(interop.Options{Whole: true}); opened == 0 {
			t.Error("an import of all files opens none")
		}
		home := s.dir
		for _, dir := range []string{".", "p", home} {
			t.Chdir(home)
			s.dir = dir
			if _, opened := s.load(); opened != 0 {
				t.Errorf("an import of %s opens %d sources", dir, opened)
			}
		}
		changes := map[string]func(){
			"a file grew": func() { s.write("p/a.jsonl", first+line("a", "a3", "a2", "Third question")) },
			"a file has other bytes": func() {
				s.write("p/a.jsonl", strings.Replace(first, "Second", "Fourth", 1))
			},
			"a file has the old time and other bytes": func() {
				before, _ := os.Stat(s.path("p/a.jsonl"))
				s.write("p/a.jsonl", strings.Replace(first, "Second", "Eighth", 1))
				s.change("p/a.jsonl", func(path string) error { return os.Chtimes(path, before.ModTime(), before.ModTime()) })
			},
			"a file was replaced by a copy": func() {
				s.write("new", first)
				s.change("p/a.jsonl", func(path string) error { return os.Rename(s.path("new"), path) })
			},
			"a file was touched": func() {
				s.change("p/a.jsonl", func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) })
			},
			"a file has another name": func() {
				s.change("p/c.jsonl", func(path string) error { return os.Link(s.path("p/a.jsonl"), path) })
			},
			"a session is an older copy": func() {
				name, ok := strings.CutSuffix(s.store, ".db")
				if ok {
					_, err := s.log.Append(t.Context(), "a", eventlog.Any(), event.New(event.Session{Updated: true, Title: name}))
					if err != nil {
						t.Fatal(err)
					}
				} else if err := os.Truncate(filepath.Join(s.store, "a.jsonl"), 0); err != nil {
					t.Fatal(err)
				}
			},
			"a session was removed": func() {
				if err := erase.Remove(t.Context(), s.log, "a"); err != nil {
					t.Fatal(err)
				}
			},
		}
		for _, what := range slices.Sorted(maps.Keys(changes)) { // the removal is the last one: an import does not bring the session back
			s.load()
			if changes[what](); t.Failed() {
				return
			}
			if table, opened := s.load(); opened == 0 {
				t.Errorf("%s: no source is opened: %+v", what, table.Total())
			}
		}
	})
}

// Law: after any changes of files and sessions, an import with cursors leaves nothing for an
// import of all files.
func TestCursorsMissNothing(t *testing.T) {
	for _, format := range []interop.Format{claude.Format{}, codex.Format{}, pi.Format{}, gemini.Format{}} {
		t.Run(format.Name(), func(t *testing.T) {
			for seed := range testsize.Pick[uint64](1, 2, 40) {
				each(t, format, func(s *source) { s.missNothing(rand.New(rand.NewPCG(seed, 0))) })
			}
		})
	}
}

func (s *source) missNothing(random *rand.Rand) {
	s.t.Helper()
	fixtures := importtest.CopyFolders(s.t, s.t.TempDir(), filepath.Join("..", "testdata", "transcripts", s.format.Name()))
	all := fixtures.Contents()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	one := func() string { return names[random.IntN(len(names))] }
	steps := []func(){
		func() { // a file begins, grows or gets shorter
			name := one()
			s.write(name, string(importtest.Cut(random)(name, all[name])))
		},
		func() { s.write(one(), string(all[one()])) },
		func() { _ = os.Remove(s.path(one())) },
		func() { // a second name
			if from := s.path(one()); exists(from) {
				s.change(one()+".copy.jsonl", func(path string) error { _ = os.Remove(path); return os.Link(from, path) })
			}
		},
		func() { // equal size and time
			name := one()
			if content, err := os.ReadFile(s.path(name)); err == nil {
				info, _ := os.Stat(s.path(name))
				s.write(name, string(bytes.Replace(content, []byte("the"), []byte("THE"), 1)))
				s.change(name, func(path string) error { return os.Chtimes(path, info.ModTime(), info.ModTime()) })
			}
		},
		func() { importtest.Redact(s.t, s.log, func(*event.Event) bool { return random.IntN(20) == 0 }) },
		func() {
			if sessions := importtest.Sessions(s.t, s.log); len(sessions) > 0 {
				err := erase.Remove(s.t.Context(), s.log, sessions[random.IntN(len(sessions))])
				if err != nil && !errors.Is(err, eventlog.ErrInUse) {
					s.t.Fatal(err)
				}
			}
		},
		func() { // an import that ends in the middle
			ctx, cancel := context.WithCancel(s.t.Context())
			defer cancel()
			_, _ = interop.Import(ctx, s.log, []interop.Format{s.format}, []string{s.dir}, interop.Options{Progress: func(interop.Row) { cancel() }})
		},
		func() { s.load() },
	}
	for _, name := range names {
		if random.IntN(2) == 0 {
			s.write(name, string(all[name]))
		}
	}
	for range testsize.Pick(4, 8, 20) {
		for range 1 + random.IntN(3) {
			steps[random.IntN(len(steps))]()
		}
		s.load()
		if table, _ := s.load(interop.Options{Whole: true}); table.Total().Events != 0 {
			s.t.Fatalf("an import of all files adds %+v", table.Total())
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Law: once a number is redacted, the cursors say nothing of it, also after the next import.
func TestCursorsForgetErasedText(t *testing.T) {
	each(t, claude.Format{}, func(s *source) {
		keeper, _ := eventlog.As[importrun.CursorStore](s.log.Store())
		stored := func() string {
			t.Helper()
			data, err := keeper.ImportCursors(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		s.write("pin-1234/a.jsonl", line("a", "a1", "", "My PIN is 1234."))
		s.write("q/b.jsonl", line("b", "b1", "", "Other question"))
		s.load()
		if got := stored(); !strings.Contains(got, `"id":"a"`) || strings.Contains(got, "1234") {
			t.Errorf("the cursors are %s", got)
		}
		importtest.Redact(t, s.log, func(e *event.Event) bool { return strings.Contains(string(e.Data), "1234") })
		if got := stored(); got != "" {
			t.Errorf("after a redaction, the cursors are %s", got)
		}
		s.load()
		if got := stored(); !strings.Contains(got, `"id":"b"`) || strings.Contains(got, `"id":"a"`) {
			t.Errorf("after the next import, the cursors are %s", got)
		}
		if _, opened := s.load(); opened == 0 {
			t.Error("a file with erased records is not read")
		}
	})
}

// A file whose import depends on another file is read again when that file comes.
func TestOtherFilesComeLater(t *testing.T) {
	each(t, claude.Format{}, func(s *source) {
		s.write("p/a.jsonl", line("a", "a1", "", "First question"))
		s.write("p/early.jsonl", `{"type":"system","subtype":"note","uuid":"c2","parentUuid":"c1","sessionId":"c","timestamp":"2026-03-01T10:00:01Z","content":"x"}`+"\n")
		if table, _ := s.load(); table.Total().Skipped != 1 {
			t.Fatalf("the first import: %+v", table.Total())
		}
		s.write("q/c.jsonl", line("c", "c1", "", "Begins late"))
		s.load()
		if table, _ := s.load(); table.Total().Skipped != 0 {
			t.Errorf("after the session has begun: %+v", table.Total())
		}
		s.write("p/b.jsonl", `{"type":"summary","leafUuid":"a1","summary":"A title from beside"}`+"\n"+line("b", "b1", "", "Other question"))
		s.load()
		table, _ := s.load()
		if total := table.Total(); total.Skipped != 0 || total.Events != 0 || len(total.Sessions) != 3 {
			t.Errorf("the last import: %+v", total)
		}
		title := ""
		for _, e := range importtest.Events(t, s.log, "a") {
			if about, ok, err := event.Decode[event.Session](&e); ok && err == nil {
				title = about.Title
			}
		}
		if title != "A title from beside" {
			t.Errorf("the title is %q", title)
		}
	})
}
